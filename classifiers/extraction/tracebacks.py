"""Python tracebacks in a log: where each ends, whatever a launcher prints before its lines, and which came first.

The first exception of a chain is the beginning. Python prints it first ("During handling of the above exception ...",
"The above exception was the direct cause ..."), Java and Node.js print it last (`Caused by: `, `[cause]: `).

Exceptions that Python reports and ignores, in a destructor or in a function that runs at the exit, end nothing, and
most runs that end early print some. Source: `sys.unraisablehook`, `atexit`, `sys.excepthook` of CPython.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import LineHeader, parse_header
from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.onset import Onset

EXCEPTION: Final = re.compile(
    r"(?:^|[\s\]:|>])(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|SystemExit|Failure|Timeout|Killed|Fault"
    r"|Iteration|NotFound|Mismatch|OutOfMemory|Expired|Denied|Unavailable))(?:\(.{0,80}?\))?(?::|\s*$)"
)
# What the name of an exception ends with, in the expression above: found faster where a line names none.
_EXCEPTION_ENDINGS: Final = (
    "Error", "Exception", "Interrupt", "SystemExit", "Failure", "Timeout", "Killed", "Fault", "Iteration", "NotFound",
    "Mismatch", "OutOfMemory", "Expired", "Denied", "Unavailable",
)  # fmt: skip
_FINAL: Final = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\(.{0,80}?\))?\s*(?::|$)")
DIRECT_CAUSE: Final = "The above exception was the direct"
CHAIN_WORDS: Final = ("During handling of the above", DIRECT_CAUSE)
_LIBRARY: Final = re.compile(r"(?:site|dist)-packages|[/\\]lib[/\\]python\d|<frozen|<string>|[/\\]bin[/\\]")
_LIBRARY_PARTS: Final = ("packages", "lib", "<", "bin")  # one is part of every match
# Loguru marks the frame in which it caught an exception.
_MARK: Final = "> "
_INNER_LINES: Final = ('File "', f'{_MARK}File "', "^", "[Previous line")
# Limits of what is read of one traceback (judgement: longer ones are cut by loggers as well).
_MOST_LINES: Final = 300
_MOST_SKIPPED: Final = 200
_MOST_FOREIGN: Final = 4
_LINE_LENGTH: Final = 4_000
_CODE_LENGTH: Final = 120
_NAME_RANGE: Final = 600
_CHAIN_RANGE: Final = 6_000  # the message of a first exception may be long
_MOST_BETWEEN: Final = 60_000  # characters between an exception and its cause
_CAUSE: Final = re.compile(r"(?:Caused by|\[cause\]): ")
# What a runtime prints between an exception and its cause: frames, how many were left out, and fields of the exception.
_FRAME: Final = re.compile(r"(?:^|[\s:|>\]])(?:at \S|\.\.\. \d)|^\s*[{}]?\s*$|^\s*[\w$]+: ")

# How Python reports an exception that it ignores.
_IGNORED_HEADING: Final = re.compile(
    r"Exception ignored (?:in|on|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.excepthook):"
)
_IGNORED_SIGNS: Final = ("Exception ignored ", "Error in atexit.", "Error in sys.excepthook")
_TRACEBACK_BEGIN: Final = "Traceback (most recent call last):"
_IGNORED: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")
_MOST_FRAME_LINES: Final = 200  # of one traceback (judgement)
_MOST_LINES_BETWEEN: Final = 4  # lines from an exception to the traceback that it led to

ParseHeader = Callable[[str], LineHeader]


@dataclass(frozen=True, slots=True)
class Traceback:
    """One traceback.

    Attributes:
        start_offset: where its first line begins, in characters.
        final_offset: where its final line begins.
        final_line: the line that names the exception.
        exception: the class of the exception, without its module.
        chained: whether an earlier traceback led to it.
        raised_at: function and source line of the innermost frame outside of libraries, "" if there is none.
    """

    start_offset: int
    final_offset: int
    final_line: str
    exception: str
    chained: bool = False
    raised_at: str = ""


def exception_type(line: str) -> str | None:
    """The exception class that a line names (`pkg.SomeError: text`), None without one."""
    found = EXCEPTION.search(line, 0, _NAME_RANGE) if contains_any(line, _EXCEPTION_ENDINGS) else None
    return None if found is None else found["type"].rsplit(".", 1)[-1]


def parse_traceback(text: str, offset: int, first_line: str, *, parse: ParseHeader = parse_header) -> Traceback | None:
    """The traceback that begins with the line at an offset, None if its final line is not in the text.

    Args:
        text: the log.
        offset: where the first line begins.
        first_line: that line.
        parse: reads the header of a line; lines of other writers are skipped.
    """
    message = indented_message(first_line, parse(first_line))
    indent = _indent(message)
    # The head of a program that logs the output of another one, such as "INFO | ".
    logged = message[: max(0, message.find("Traceback"))] if not message.lstrip().startswith("Traceback") else ""
    frame = _InnermostFrame()
    foreign = 0
    first: Traceback | None = None
    for begin, line, whole in _lines_of_writer(text, offset, first_line, parse):
        message = whole.removeprefix(logged)
        words = message.strip()
        if not words:
            continue
        if _indent(message) > indent or words.startswith(_INNER_LINES):
            frame.add(words)
            continue
        found = _FINAL.match(words)
        if not frame.seen and found is None:
            return None
        exception = found["type"] if found is not None else ""
        traceback = Traceback(offset, begin, line, exception.rsplit(".", 1)[-1], raised_at=frame.raised_at)
        if found is not None and _names_exception(words, exception):
            return traceback
        first = first or traceback  # perhaps of another writer, between two lines of this traceback
        foreign += 1
        if foreign > _MOST_FOREIGN:
            break
    return first


def _names_exception(words: str, name: str) -> bool:
    return EXCEPTION.search(words) is not None or "." in name or name[:1].isupper()


class _InnermostFrame:
    """The innermost frame of a traceback so far that is not of a library."""

    def __init__(self) -> None:
        self.seen = False
        self.raised_at = ""
        self._code_follows = False

    def add(self, words: str) -> None:
        """Read a line that belongs to the frames."""
        words = words.removeprefix(_MARK)
        if words.startswith('File "'):
            self.seen = True
            self._code_follows = not contains_any(words, _LIBRARY_PARTS) or _LIBRARY.search(words) is None
            if self._code_follows:
                self.raised_at = words.rpartition(", in ")[2]
        elif self._code_follows and words[:1] not in "^~":
            self.raised_at = f"{self.raised_at}: {words[:_CODE_LENGTH]}"
            self._code_follows = False


def _lines_of_writer(text: str, offset: int, first_line: str, parse: ParseHeader) -> Iterator[tuple[int, str, str]]:
    """Offset, line and message of the lines after the first one that the same writer printed."""
    word = first_line.find("Traceback")
    prefixed = bool(first_line[:word].strip()) and word > 0
    header = parse(first_line)
    writer = _writer(header)
    at = _line_end(text, offset) + 1
    # A prefix that is no header of a known form, as that of a host in a log of which few lines have one.
    is_unknown = prefixed and writer is None and header.message_start < word
    prefix = first_line[:word] if is_unknown and text.startswith(first_line[:word], at) else ""
    skipped = 0
    for _ in range(_MOST_LINES):
        if at >= len(text):
            return
        end = _line_end(text, at)
        line = text[at : min(end, at + _LINE_LENGTH)].rstrip("\r")
        begin, at = at, end + 1
        if not prefixed:
            yield begin, line, line
            continue
        if prefix:
            if line.startswith(prefix):
                yield begin, line, line[len(prefix) :]
                continue
            skipped += 1
            if skipped > _MOST_SKIPPED:
                return
            continue
        header = parse(line)
        if writer is None or _writer(header) == writer:
            yield begin, line, indented_message(line, header)
            continue
        skipped += 1
        if skipped > _MOST_SKIPPED:
            return


def indented_message(line: str, header: LineHeader) -> str:
    """What follows a line's header and one space, with its indentation: headers are read up to the first word."""
    start = len(line[: header.message_start].rstrip())
    return line[start + 1 :] if start and line[start : start + 1].isspace() else line[start:]


def _writer(header: LineHeader) -> tuple[int | None, str | None, str | None] | None:
    """The process that a header names, None where it names none."""
    if header.rank is not None:
        return header.rank, None, None
    return (None, header.host, header.pid) if header.host or header.pid else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def mark_chains(text: str, tracebacks: Sequence[Traceback]) -> list[Traceback]:
    """The tracebacks in order, those that another one led to marked as chained."""
    out: list[Traceback] = []
    for traceback in tracebacks:
        chained = False
        if out and traceback.start_offset > out[-1].final_offset:
            between = text[out[-1].final_offset : traceback.start_offset]
            chained = len(between) < _CHAIN_RANGE and any(words in between for words in CHAIN_WORDS)
        out.append(replace(traceback, chained=True) if chained else traceback)
    return out


def order_chains(items: Sequence[EvidenceItem], tracebacks: Sequence[Traceback], text: str) -> None:
    """Let the first exception of each chain lead.

    Args:
        items: the items of one log, by offset; changed in place.
        tracebacks: the Python tracebacks of the log, in order.
        text: the log.
    """
    by_offset = {item.offset: item for item in items}
    _lift_heads(by_offset, tracebacks)
    _demote_raised_from(by_offset, tracebacks, text)
    _demote_headings(by_offset, tracebacks, text)
    _demote_wrappers(items, text)


def _lift_heads(by_offset: dict[int, EvidenceItem], tracebacks: Sequence[Traceback]) -> None:
    """An error that is often a consequence is none where the exceptions that it led to are errors of their own."""
    head: EvidenceItem | None = None
    for traceback in tracebacks:
        item = by_offset.get(traceback.final_offset)
        if not traceback.chained:
            head = item
        elif (
            head is not None
            and item is not None
            and item.role == head.role == "initiating"
            and head.onset is Onset.LIKELY_CONSEQUENCE
            and item.onset < head.onset
        ):
            head.onset = item.onset


def _demote_raised_from(by_offset: dict[int, EvidenceItem], tracebacks: Sequence[Traceback], text: str) -> None:
    """An exception that the catalogue does not know, raised from one that it knows, is a consequence of that one."""
    known: EvidenceItem | None = None
    end = 0
    for traceback in tracebacks:
        item = by_offset.get(traceback.final_offset)
        is_from = traceback.chained and DIRECT_CAUSE in text[end : traceback.start_offset]
        end = traceback.final_offset
        if item is None or item.hits or not is_from:
            known = item if item is not None and item.hits else None
        elif known is not None and item.role == "initiating" and known.role in {"initiating", "cascade"}:
            item.role, item.onset = "cascade", Onset.NEUTRAL


def _demote_headings(by_offset: dict[int, EvidenceItem], tracebacks: Sequence[Traceback], text: str) -> None:
    """An exception without frames of its own, right above the traceback of another one, only announces that one."""
    finals = {traceback.final_offset for traceback in tracebacks}
    for traceback in tracebacks:
        above = text.rfind("\n", 0, max(0, traceback.start_offset - 1)) + 1
        heading, cause = by_offset.get(above), by_offset.get(traceback.final_offset)
        if heading is None or cause is None or above in finals or heading.exception in {None, cause.exception}:
            continue
        if heading.role == cause.role == "initiating" and cause.onset <= Onset.CHAINED_TRACEBACK:
            heading.role, heading.onset = "cascade", Onset.NEUTRAL


def _demote_wrappers(items: Sequence[EvidenceItem], text: str) -> None:
    """An exception whose cause is printed below it is a consequence of that cause."""
    wrapper: EvidenceItem | None = None
    for item in items:
        if wrapper is not None and _is_own_error(item) and _introduces(text, wrapper, item):
            wrapper.role, wrapper.onset = "cascade", Onset.NEUTRAL
        is_cause = _CAUSE.match(item.message.lstrip()) is not None and item.role == "initiating"
        if is_cause and wrapper is not None and _only_frames(text, wrapper, item):
            item.onset = min(item.onset, wrapper.onset)
            wrapper.role, wrapper.onset = "cascade", Onset.NEUTRAL
        if item.role == "initiating" and (is_cause or item.exception is not None):
            wrapper = item


def _introduces(text: str, wrapper: EvidenceItem, item: EvidenceItem) -> bool:
    """Whether an exception ends in a colon and the next line names the one that it is about."""
    return (
        wrapper.role == "initiating"
        and item.exception is not None
        and wrapper.text.rstrip().endswith(":")
        and not text[wrapper.offset + len(wrapper.text) : item.offset].strip()
    )


def _is_own_error(item: EvidenceItem) -> bool:
    return item.role == "initiating" and item.onset < Onset.LIKELY_CONSEQUENCE


def _only_frames(text: str, wrapper: EvidenceItem, cause: EvidenceItem) -> bool:
    between = text[wrapper.offset + len(wrapper.text) : cause.offset]
    return len(between) <= _MOST_BETWEEN and all(_FRAME.search(line) for line in between.splitlines())


def may_have_ignored(text: str) -> bool:
    """Whether a log may report an ignored exception, by a quick look."""
    return any(sign in text for sign in _IGNORED_SIGNS)


def ignored_lines(lines: Sequence[str]) -> set[int]:
    """The places of the lines that belong to ignored exceptions: heading, frames, and the exception itself."""
    found: set[int] = set()
    for place, line in enumerate(lines):
        heading = _IGNORED_HEADING.search(line)
        if heading is not None and place not in found:
            found.update(range(place, _end_of_ignored(lines, place + 1, heading.start())))
    return found


def _end_of_ignored(lines: Sequence[str], place: int, column: int) -> int:
    """The place after the traceback that begins at a place, behind prefixes of as many characters as the heading's."""
    if place < len(lines) and _IGNORED.match(lines[place], column) is not None:  # printed without frames
        return place + 1
    while place < len(lines) and lines[place].startswith(_TRACEBACK_BEGIN, column):
        place += 1
        last = min(len(lines), place + _MOST_FRAME_LINES)
        while place < last and lines[place][column : column + 1] in {" ", "\t"}:
            place += 1
        place = min(place + 1, len(lines))  # the exception
        following = [line[column:] for line in lines[place : place + _MOST_LINES_BETWEEN]]
        if not any(words.startswith(CHAIN_WORDS) for words in following):
            break
        place += next((at for at, words in enumerate(following) if words.startswith(_TRACEBACK_BEGIN)), 0)
    return place
