"""Log lines without what precedes their message: time stamps, hosts, processes, ranks and levels."""

import re
from typing import Final

from classifiers.extraction.line_headers import parse_header
from service.formatting import strip_colour

_MOST: Final = 12  # headers of one line
_LONGEST: Final = 1_000  # characters that are read
# Each is removed at the start of a line, repeatedly. A level counts in capitals only: `error: x` is part of a message.
_HEADERS: Final = (
    re.compile(r"\[\s*\d+\.\d+\]\s+"),  # kernel
    re.compile(r"20\d\d[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?[:,]?\s*"),
    re.compile(r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s+\d\d:\d\d:\d\d\s+"),
    re.compile(r"(?:\d{4}\s+)?\d\d:\d\d:\d\d(?:[.,]\d+)?\s*[|:]?\s*"),
    re.compile(
        r"[\w.-]+ (?:app|kernel|systemd|kubelet|slurmd|[\w.-]+\[\d+\])(?:\[\d+\])?:\s+"
        # host and process of syslog
    ),
    re.compile(r"\(\d+\)\s+(?=\[)"),
    re.compile(r"\[(?:rank|worker|trainer|default)[ :._-]?\d+\]:?\s*"),
    re.compile(r"\[[\w.-]+:\d+\]:?\s*"),
    re.compile(r"\[[\w.-]+-(?:launcher|worker|master|ps|node|train)-\d+\]\s*"),
    re.compile(r"\((?:[\w.]+ )?pid=\d+(?:, ip=[\d.]+)?\)\s*"),
    re.compile(r"(?:[\w.]+-)+(?:node|worker|train|launcher|master)-?\d*:\s+"),
    re.compile(r"worker-\d+:\s+"),
    re.compile(r"\[(?:\w+)=[^\]]{0,60}\]\s*"),  # [process=0]
    re.compile(r"[-|]?\s*\[?(?:ERROR|CRITICAL|FATAL|WARNING|WARN|INFO|DEBUG)\]?\s*(?:[-:|]\s*|\s)"),
    re.compile(r"(?:stderr|stdout):\s+"),
    re.compile(r"NVRM:\s+(?=Xid)"),
)


def cleaned(line: str) -> str:
    """The message of a log line, in one line; the whole line if nothing but headers would be cut off."""
    text = " ".join(strip_colour(line[:_LONGEST]).split())
    message = text[parse_header(text).message_start :].lstrip(" -|:") or text
    for _ in range(_MOST):
        found = next((hit for header in _HEADERS if (hit := header.match(message)) and hit.end()), None)
        if found is None:
            break
        message = message[found.end() :].lstrip(" -|:")
    return message or text
