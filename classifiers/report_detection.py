"""Decides whether a text is a report: what a person writes about a failure, perhaps with lines of a log in it.

The decision is the share of lines that read as prose. A line is prose if it asks a question, speaks in the first person
or is a sentence: two common function words, a quarter of its words, and no head that a program writes (a time stamp, a
level, an exception's name, a frame of a traceback). Words that only people use (cues/report.toml) count in
reports alone.
"""

import re
from typing import Final

# All of these are a judgement.
MIN_PROSE_SHARE: Final = 0.1  # of the lines of a report
_MAX_REPORT: Final = 12_000  # characters
_MAX_CHARS: Final = 300  # of a line that are read
_MIN_WORDS: Final = 4
_MIN_FUNCTION_WORDS: Final = 2
_MIN_FUNCTION_SHARE: Final = 0.25
_MIN_SIGNS: Final = 4  # of a script that is written without spaces
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_FIRST_PERSON: Final = re.compile(r"\b(?:I|I'm|I've|my|My|we|We|our|me)\b")
_OTHER_SCRIPT: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af\u0400-\u04ff]")
# What collectors and launchers put before every line says nothing of who wrote it.
_COLLECTED: Final = re.compile(
    r"^(?:\[[\w/,-]{1,40}\](?:<std\w+>)?:?\s|\d{4}-\d\d-\d\dT[\d:.]+Z?\s|\([\w\s=.,]{1,60}\)\s|[a-z][\w-]*\d[\w-]*:\s)"
)
_PROGRAM_HEAD: Final = re.compile(
    r"""^(?:\[|\d[\d:/.T-]{6,}|[A-Z]\d{4}\s|(?:WARN|INFO|ERROR|DEBUG|FATAL|CRITICAL)|File\s"|[\w./-]+\[\d+\]:
    |[\w.]*(?:Error|Exception|Warning|Interrupt)\b|\w+:\s|(?:>>>|\$|\#)\s|[-*=_]{3,}|Traceback\s)""",
    re.VERBOSE,
)
_FUNCTION_WORDS: Final = frozenset(
    {
        "the", "a", "an", "is", "are", "was", "were", "it", "its", "this", "that", "these", "those", "of", "to", "in",
        "on", "at", "with", "without", "for", "from", "by", "and", "or", "but", "so", "not", "no", "nothing", "only",
        "after", "before", "while", "when", "then", "than", "as", "both", "each", "every", "all", "one", "other",
        "another", "same", "still", "never", "always", "also", "does", "do", "did", "has", "have", "had", "be", "been",
        "can", "cannot", "will", "would",
    }
)  # fmt: skip


def is_prose(line: str) -> bool:
    """Whether a line reads as written by a person."""
    line = _COLLECTED.sub("", line.strip()[:_MAX_CHARS])
    if not line.isascii() and len(_OTHER_SCRIPT.findall(line)) >= _MIN_SIGNS:
        return True
    words = _WORD.findall(line)
    if len(words) < _MIN_WORDS:
        return False
    if line.endswith("?") or _FIRST_PERSON.search(line):
        return True
    if _PROGRAM_HEAD.match(line):
        return False
    common = sum(word.lower() in _FUNCTION_WORDS for word in words)
    return common >= _MIN_FUNCTION_WORDS and common >= _MIN_FUNCTION_SHARE * len(words)


def is_report(text: str) -> bool:
    """Whether a text is short enough, and enough of its lines are prose, that a person wrote it."""
    if len(text) > _MAX_REPORT:
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and sum(map(is_prose, lines)) >= MIN_PROSE_SHARE * len(lines)
