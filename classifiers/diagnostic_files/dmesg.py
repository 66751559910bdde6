"""`dmesg`: the messages of a node's kernel, as node events.

Source: the manual page of dmesg (util-linux 2.32 to 2.41): seconds since boot, `-T`, `--time-format iso`, `-x`, `-r`,
`-t`; `journalctl -k` in its formats short and short-iso. Times without a zone are UTC.
"""

import re
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
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = [_parsed(line) for line in lines[-_MOST_LINES:]]
    if not any(is_known for _, _, is_known in found):
        raise NotDiagnostic("not an output of dmesg: no line is one of a kernel")
    return [(message[:_TEXT_MOST], at) for message, at, _ in found if message]


def stamped_line(line: str) -> tuple[str, datetime | None] | None:
    """Return message and time of a line in one of the forms of dmesg with a time in brackets; None of another line."""
    level = _LEVEL.match(line)
    rest = line[level.end() :] if level is not None else line
    head = _SINCE_BOOT.match(rest) or _DATED.match(rest)
    if head is None or not (message := rest[head.end() :].strip()):
        return None
    return message, _time(head.groupdict().get("at"))


def _parsed(line: str) -> tuple[str, datetime | None, bool]:
    """Return message and time of a line, and whether it has the form of a kernel's line."""
    level = _LEVEL.match(line)
    rest = line[level.end() :] if level is not None else line
    for pattern in (_SINCE_BOOT, _DATED, _ISO, _SYSLOG):
        head = pattern.match(rest)
        if head is not None:
            return rest[head.end() :].strip(), _time(head.groupdict().get("at")), True
    return rest, None, level is not None or _OF_KERNEL.match(rest) is not None


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
