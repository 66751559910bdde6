"""`dmesg`: the messages of a node's kernel, as node events.

Source: the manual page of dmesg (util-linux 2.32 to 2.41): seconds since boot, `-T`, `--time-format iso`, `-x`, `-r`,
`-t`; `journalctl -k` in its formats short and short-iso. Times without a zone are UTC.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from classifiers.contracts import NotDiagnostic

# The last lines are those of the job (judgement: the kernel's buffer holds some thousands).
_MOST_LINES: Final = 1_000
_TEXT_MOST: Final = 2_000  # characters of a line
_LEVEL: Final = re.compile(r"(?:<\d{1,3}>|[a-z]{3,8}\d? {0,4}:[a-z]{3,7} {0,4}: )")
_SINCE_BOOT: Final = re.compile(r"\[ {0,11}\d{1,11}\.\d{6}(?:[,<] {0,8}[^\]]{1,20})?\] ?")
_DATED: Final = re.compile(r"\[(?P<at>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ?")
_ISO: Final = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) (?:\S{1,200} kernel: )?"
)
_SYSLOG: Final = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,200} kernel: ")
# Where no line has a time (`-t`): the name of a part of the kernel, as most of its lines have.
_OF_KERNEL: Final = re.compile(r"[A-Za-z][\w.-]{1,40}(?: [\w:.()/-]{1,60}){0,4}: \S")


def read_kernel_lines(text: str) -> list[tuple[str, datetime | None]]:
    """Return the kernel's messages, with their times where the lines have a date.

    Raises:
        NotDiagnostic: the text is not an output of dmesg.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()][-_MOST_LINES:]
    found = [_parsed(line, (_SINCE_BOOT, _DATED, _ISO, _SYSLOG)) for line in lines]
    if not any(has_head for _, _, has_head in found) and not any(map(_is_of_kernel, lines)):
        raise NotDiagnostic("not an output of dmesg: no line is one of a kernel")
    return [(message[:_TEXT_MOST], at) for message, at, _ in found if message]


def stamped_line(line: str) -> tuple[str, datetime | None] | None:
    """Return message and time of a line in one of the forms of dmesg with a time in brackets; None of another line."""
    message, at, is_stamped = _parsed(line, (_SINCE_BOOT, _DATED))
    return (message, at) if is_stamped and message else None


def _parsed(line: str, heads: Sequence[re.Pattern[str]]) -> tuple[str, datetime | None, bool]:
    """Return message and time of a line, and whether it has one of these heads."""
    rest = line[_level_end(line) :]
    for pattern in heads:
        head = pattern.match(rest)
        if head is not None:
            return rest[head.end() :].strip(), _time(head.groupdict().get("at")), True
    return rest, None, False


def _is_of_kernel(line: str) -> bool:
    """Whether a line without a head has the level, or the name of a part, of a kernel's line."""
    return _level_end(line) > 0 or _OF_KERNEL.match(line) is not None


def _level_end(line: str) -> int:
    level = _LEVEL.match(line)
    return level.end() if level is not None else 0


def _time(written: str | None) -> datetime | None:
    if written is None:
        return None
    try:
        if written[:1].isalpha():
            return datetime.strptime(written, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        at = datetime.fromisoformat(written.replace(",", "."))
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
