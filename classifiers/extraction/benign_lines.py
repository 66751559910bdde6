"""Lines and items that tell of no failure: what any run prints (benign_lines.toml), and trouble that was overcome.

A log has start-up warnings, help texts of launchers and notices of libraries around a failure. The causes and missing
parts that they mention are no evidence on it. The same holds for trouble that the lines around it call tolerated: a
shell or make goes on, or a tool prints it as a warning.

Of texts, `is_benign` knows what any run prints, and `is_harmless` also counts of no failures and trouble that the line
itself calls overcome; `is_harmless_item` and what follows it ask the same of items of evidence. `line_roles` asks the
parts of `is_harmless` one by one, since a catalogue entry or an exception on the line speaks against some of them.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.data import word_lists
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import without_time
from classifiers.extraction.line_shapes import is_overcome
from classifiers.extraction.onset import Onset

_SHORTEST: Final = 8  # letters; a shorter phrase may be part of any line (judgement)
# Python's warnings module prints the place before the class; an exception of that name has no place before it.
_PYTHON_WARNING: Final = re.compile(r"(?:\.py|>):\d+: \w*Warning: ")
_ZERO: Final = re.compile(r"\b(?:0|0\.0+%?|no|zero|none|false|without)\b")
_TROUBLE: Final = (
    r"(?:\w*(?:error|fail|corrupt|missing|mismatch|skip|stall|lost|invalid|unexpected|time-?out|retr|drop|exceed|nan"
    r"|overflow)\w*)"
)
_ENDED: Final = r"\w*(?:stopp|abort|hang|kill|cancel|interrupt|crash|preempt|evict|stragg|reject|expired)\w*"
_COUNTED_NONE: Final = re.compile(
    rf"\b(?:0|no|zero|without(?: any)?)\b(?:[ -][\w-]+){{0,2}}?[ -]{_TROUBLE}(?:[ _-]\w+)?"
    rf"|\b(?:0|no|zero)\b(?:[ -][\w-]+){{0,2}}?[ -]{_ENDED}"
    # Without these boundaries each letter of each word is tried as the beginning of the same match.
    rf"|\b{_TROUBLE}(?:[ _-]\w+){{0,2}}[\"']?\s{{0,2}}[:=]?\s{{0,3}}[\[(]?"
    rf"(?:0(?:\.0+)?%?\b(?!:\d)|none\b|false\b|no\b(?! +\w)|\[\])"
    rf"|\b{_ENDED}[\"']?\s{{0,2}}[:=]?\s{{0,3}}(?:0\b|none\b|false\b)"
)
# An error that is measured, as in "word error rate 0.12" or "val_error=3.1e-02".
_METRIC: Final = re.compile(
    r"\b[\w-]*err(?:or)?s?(?:[ _](?:rate|norm|mean|std|loss))?[\"']?\s{0,2}[:=(]?\s{0,3}\d+\.\d+(?:e[+-]?\d+)?%?"
)
# Angle brackets end a path: the closing tag behind a word, as of an error page, makes no path of it.
_PATH: Final = re.compile(r"(?<![^\s'\"<>])[^\s'\"<>/]*/[^\s'\"<>]*")
_RANGE: Final = 400  # characters of a line that are read (judgement)
_MAKE_IGNORED: Final = re.compile(r"g?make(?:\[\d+\])?: \[.*\(ignored\)\s*$")
_SHELL_TRACE: Final = re.compile(r"\++ ")
_SHELL_TRUE: Final = re.compile(r"\++ (?:true|:)\s*$")
_WARNING_HEADING: Final = re.compile(r"(?:\u2502 )?(?:CMake )?(?:[Ww]arning|WARNING|NOTE|Note|INFO|HINT|Hint)\b")
_BLOCK_MARKS: Final = (" ", "\t", "\u2502")
# A setting as programs print all of theirs at the start: its name, dots, its value.
_SETTING: Final = re.compile(r"[\w.-]{2,80} \.{4,}")
# A setting of a file in YAML, TOML or INI, by its name in parts; what names an end or its reason is none.
_FILE_SETTING: Final = re.compile(r"\s*-?\s*[a-z][a-z0-9]*(?:[_.][a-z0-9]+)+\s?[:=]\s?[\w./'\"\[\]{}-]{0,60}\s*$")
# A setting whose value is a list of settings: `optimizer: {name: adamw, lr: 0.1}`.
_INLINE_SETTINGS: Final = re.compile(r"\s*[a-z][\w.-]{0,60}\s?[:=]\s?\{\w[\w.-]{0,60}\s?[:=][^{}\n]{0,300}\}\s*$")
# A variable of the environment, as scripts print all of theirs.
_VARIABLE: Final = re.compile(r"(?:export )?[A-Z][A-Z0-9_]{2,80}=\S{0,200}\s*$")
_OF_END: Final = re.compile(r"exit|code|status|reason|signal|message|msg|cause|state")
# The settings of an object on one line: Namespace(...), TrainingArguments(...).
_SETTINGS: Final = re.compile(r"(?:Namespace|\w*(?:Arguments|Args|Config|Options|Settings))\(")
_PLAIN_SETTING: Final = re.compile(r"\b\w+=(?:true|false|none|[\d.]+(?:e[+-]?\d+)?)(?=[,)\s])")
# After a line that ends with its trouble, as HTTP clients print it.
_RETRY_ANNOUNCED: Final = re.compile(r"(?i)\b(?:retrying|retry|trying again|will retry) (?:in|after) \d")
# A standard command that did not find or make something; a shell goes on after it unless its script says otherwise.
_COMMAND_COMPLAINS: Final = re.compile(
    r"(?:/[\w./-]{1,40}/)?(?:ls|cp|mv|rm|mkdir|rmdir|cat|ln|touch|find|stat|du|df|head|tail|grep|p?kill|killall|which"
    r"|xauth|chmod|chown|readlink|diff|id): [^\n]{0,200}(?:No such file or directory|File exists|omitting directory"
    r"|does not exist|No such process|no \S+ in \(|cannot find name for|are the same file)"
)
_NAMED: Final = re.compile(r"['\"\u2018]([^'\"\u2019]{3,200})['\"\u2019]")
_PROGRAM_FAILED: Final = re.compile(
    r"\n(?:Traceback \(most recent call last\)|[A-Za-z_][\w.]{1,80}?(?:Error|Exception): )"
)
_FAR: Final = 65_536  # characters below such a command in which a program may have failed (judgement)
_MOST_LINES: Final = 8  # above a line that may belong to a warning (judgement: a warning of a tool is a paragraph)


# What runs print before their work, known by its form: rules between blocks, pip, environment modules and Lmod, a
# shell's trace, NCCL's information; bars of tqdm and pip.
_FIRST_WORDS: Final = re.compile(
    r"\s{0,8}(?:[-=*_#~+\u2500\u2550]{4,}\s*$"
    r"|(?:Collecting|Downloading|Using cached|Uninstalling|Attempting uninstall:|Found existing installation:) "
    r"[\w.,<>=!~\[\]-]{1,120}(?: \d\S*| \([^)\n]{1,120}\)|:)?\s*$"
    r"|(?:Requirement already satisfied|Installing collected packages|Looking in (?:indexes|links)): "
    r"|Successfully (?:installed|uninstalled) [\w.-]{1,80}-\d"
    r"|(?:Loading(?: requirement:)?|Unloading|Switching from) [\w+-]{1,40}/[\w.+-]{1,40}(?: |$)"
    r"|\++ (?:module|source|export|conda|set|cd) "
    r"|[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL INFO )"
)
_BAR: Final = re.compile(r"\d{1,3}%\|[^\n|]{0,200}\| ?\S{1,30}/\S{1,30} ?\[|\s{0,8}[\u2501\u2578\u257a]{4,}")
_PARTS: Final = ("%|", "\u2501")


@cache
def phrases() -> ahocorasick_rs.AhoCorasick:
    """An automaton over the packaged phrases, for a text in lower case.

    Raises:
        ValueError: the file does not follow the format; the message names the entry.
    """
    listed = word_lists.entries("benign_lines.toml", "harmless")
    for entry in listed:
        for word in entry["words"]:
            if len(word) < _SHORTEST:
                raise ValueError(f"benign_lines.toml: {entry['name']}: expected {_SHORTEST} letters or more: {word!r}")
    return word_lists.automaton(word for entry in listed for word in entry["words"])


def is_benign(line: str) -> bool:
    """Whether runs that fail and runs that succeed both print a line."""
    return is_python_warning(line) or bool(phrases().find_matches_as_indexes(line.lower()))


def is_python_warning(line: str) -> bool:
    """Whether a line is what Python's warnings module prints: a file, a line number and a class of warnings."""
    return "Warning: " in line and _PYTHON_WARNING.search(line) is not None


def is_setting(message: str) -> bool:
    """Whether a line without its header is a setting, as programs print at their start, and not how one ended."""
    if _SETTING.match(message) is not None:
        return True
    is_of_file = _FILE_SETTING.match(message) is not None or _INLINE_SETTINGS.match(message) is not None
    return is_of_file and _OF_END.search(message) is None


def says_none_failed(message: str, words: Iterable[str]) -> bool:
    """Whether a line has words of failure only in paths and settings, or to say that there was none ("0 errors").

    Args:
        message: the line without its header.
        words: the words of failure in it, in lower case.
    """
    if is_setting(message):
        return True
    low = message[:_RANGE].lower()
    rest = _COUNTED_NONE.sub(" ", low) if _ZERO.search(low) else low
    if "=" in rest and _SETTINGS.match(message) is not None:
        rest = _PLAIN_SETTING.sub(" ", rest)
    rest = _METRIC.sub(" ", rest) if "err" in rest else rest
    if "/" in rest:
        rest = _PATH.sub(" ", rest)
    return rest != low and not any(word in rest for word in words)


def is_variable(message: str) -> bool:
    """Whether a line only says how a variable of the environment is set, and not how something ended."""
    return _VARIABLE.match(message) is not None and _OF_END.search(message.lower()) is None


def is_harmless(line: str, message: str, error_words: Iterable[str]) -> bool:
    """Whether words of failure in a line tell of none: any run prints it, or it calls its own trouble overcome.

    Args:
        line: the line.
        message: the line without its header.
        error_words: the general words of failure in it.
    """
    return is_benign(line) or says_none_failed(message, error_words) or is_overcome(message)


def is_harmless_item(item: EvidenceItem) -> bool:
    """Whether words of failure in an item's line tell of none."""
    return is_harmless(item.text, item.message.lstrip(), item.error_words)


def is_harmless_context(item: EvidenceItem) -> bool:
    """Whether an item is a harmless line of a log, and no part of a traceback."""
    is_plain = item.role == "context" and item.onset is Onset.NEUTRAL and item.line_number is not None
    return is_plain and not item.from_scheduler and item.exception is None and is_harmless_item(item)


def without_harmless(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The items without the harmless lines of logs: they would take the places of lines that tell of the failure.

    Lines that the catalogue knows, and those of the scheduler, of tracebacks and of launchers stay.
    """
    return [item for item in items if item.hits or item.exited_ranks or not is_harmless_context(item)]


def is_routine(line: str) -> bool:
    """Whether runs print a line before their work, whatever becomes of them; their words are none of a failure.

    Besides benign lines these are settings, installed packages, loaded modules and progress bars.
    """
    message = without_time(line[:_RANGE])
    if _FIRST_WORDS.match(message) is not None or is_setting(message) or is_benign(line):
        return True
    return any(part in message for part in _PARTS) and _BAR.search(message) is not None


def drop_routine(lines: Sequence[str], *, of_report: bool = False) -> tuple[str, ...]:
    """The lines that may be about a failure; all of them where no other was printed.

    A person who reports a failure chose the settings that the report shows, so they stay.
    """
    says_nothing = is_benign if of_report else is_routine
    kept = tuple(line for line in lines if not says_nothing(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)


def is_tolerated(text: str, offset: int, end: int) -> bool:
    """Whether the program went on after a line, by the lines around it.

    Args:
        text: the log.
        offset: where the line begins.
        end: where it ends.
    """
    following = text[end + 1 : end + 1 + _RANGE].partition("\n")[0]
    if _MAKE_IGNORED.match(following) or _SHELL_TRUE.match(following) or _announces_later_retry(following):
        return True
    if _SHELL_TRACE.match(following) and is_overcome(following):
        return True
    if _COMMAND_COMPLAINS.match(text, offset, min(end, offset + _RANGE)) and _program_failed_later(text, offset, end):
        return True
    return text.startswith(_BLOCK_MARKS, offset) and _is_in_warning(text, offset)


def _program_failed_later(text: str, offset: int, end: int) -> bool:
    """Whether a program ran and failed below a command, and not of what the command missed."""
    failed = _PROGRAM_FAILED.search(text, end, end + _FAR)
    if failed is None:
        return False
    named = _NAMED.search(text, offset, end)
    return named is None or text.find(named[1], failed.start(), failed.start() + _FAR) < 0


def _announces_later_retry(line: str) -> bool:
    """Whether a line says that what failed before it is tried again after a time."""
    return ("etry" in line or "again" in line) and _RETRY_ANNOUNCED.search(line) is not None


def _is_in_warning(text: str, offset: int) -> bool:
    """Whether an indented line belongs to a paragraph that a tool begins with "Warning", "Note" or the like."""
    for _ in range(_MOST_LINES):
        begin = text.rfind("\n", 0, max(0, offset - 1)) + 1
        if begin >= offset:
            return False
        line = text[begin : min(offset - 1, begin + _RANGE)]
        offset = begin
        if _WARNING_HEADING.match(line):
            return True
        if line.strip() and not line.startswith(_BLOCK_MARKS):
            return False
    return False
