"""The lines of a job's last good run: a line that stood in it does not show why a later run failed.

The lines are kept as hashes. Before they are hashed, their headers (time, rank, host) are removed and numbers, ids and
temporary paths are masked. Zero and exit codes keep their value: "0 errors" and "3 errors" are different lines. Of a
long log only lines with words of failure and the lines at both ends are kept: extraction reads no others.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from typing import Final

from classifiers.contracts import GoodRun
from classifiers.extraction.line_headers import parse_header, strip_colors
from classifiers.extraction.scan import ERROR_WORDS, TRACEBACK
from classifiers.literal_search import Literals

HASH_BYTES: Final = 8
MOST_LINES: Final = 4_096
# All of these are a judgement; they bound the time of a log full of errors.
_MOST_READ: Final = 20_000  # lines
_RANGE: Final = 400  # characters of a line
_SHORTEST: Final = 12  # letters; a shorter line ("Error:") may mean anything
_WHOLE: Final = 10_000  # characters; of a log up to this length all lines are kept
_ENDS: Final = 4_000  # characters at each end of a longer log
_LAST_LINES: Final = 10

_TEMPORARY: Final = re.compile(r"/(?:var/)?tmp/[^\s'\":,)]+")
_VARIABLE: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
)
_NUMBER: Final = re.compile(
    r"(?P<exact>(?i:\b(?:code|status|signal|errno|xid|http|exit|returned|rc))\W{1,3}\d{1,3}\b)|(?<![\w.])0(?![\w.])"
    r"|\d+(?:\.\d+)*(?:e[+-]?\d+)?"
)
_SPACE: Final = re.compile(r"\s+")
_LETTER: Final = re.compile(r"[^\W\d_]")


def good_run(texts: Iterable[str], job_id: str | None = None) -> GoodRun:
    """Return the lines of a run without failure.

    Args:
        texts: its logs.
        job_id: its job, shown where one of its lines is set aside.
    """
    found: dict[bytes | None, None] = {}
    for raw in texts:
        text = strip_colors(raw)
        found.update(dict.fromkeys(_hash(line, at_end=True) for line in _last_lines(text)))
        for line in _lines_to_keep(text):
            found[_hash(line, at_end=False)] = None
            if len(found) > MOST_LINES:
                break
    lines = [one for one in found if one is not None]
    return GoodRun(frozenset(lines[:MOST_LINES]), job_id)


def has_line(run: GoodRun, line: str, *, at_end: bool = False) -> bool:
    """Return whether a good run printed a line, apart from header and numbers.

    Args:
        run: the good run.
        line: the line, without terminal colours.
        at_end: whether the line has to be among the last lines of one of its logs: an error that ends a log differs
            from the same error that a run survived.
    """
    found = _hash(line, at_end=at_end)
    return found is not None and found in run.lines


def is_last_line(text: str, offset: int) -> bool:
    """Return whether the line at an offset is among the last lines of a log."""
    rest = text[offset:]
    return len(rest) < _ENDS and sum(bool(line.strip()) for line in rest.split("\n")) <= _LAST_LINES


def to_bytes(run: GoodRun) -> bytes:
    """Return the hashes of a run, `HASH_BYTES` each, sorted."""
    return b"".join(sorted(run.lines))


def from_bytes(data: bytes, job_id: str | None = None) -> GoodRun:
    """Return the run of what `to_bytes` returned."""
    places = range(0, len(data) - len(data) % HASH_BYTES, HASH_BYTES)
    return GoodRun(frozenset(data[at : at + HASH_BYTES] for at in places), job_id)


def _hash(line: str, *, at_end: bool) -> bytes | None:
    """The hash of a line, None for one that is too short."""
    message = line[parse_header(line).message_start :][:_RANGE]
    if len(_LETTER.findall(message)) < _SHORTEST:
        return None
    masked = _VARIABLE.sub("<id>", _TEMPORARY.sub("<path>", message))
    masked = _NUMBER.sub(lambda found: found[0] if found["exact"] or found[0] == "0" else "#", masked)
    key = _SPACE.sub(" ", masked).strip() + ("\n" if at_end else "")
    return blake2b(key.encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()


def _last_lines(text: str) -> list[str]:
    return [line for line in text[-_ENDS:].split("\n") if line.strip()][-_LAST_LINES:]


def _lines_to_keep(text: str) -> Iterator[str]:
    """The lines that extraction may read: those with words of failure first, then those at both ends."""
    if len(text) <= _WHOLE:
        yield from text.split("\n")
        return
    low = text.lower() if text.isascii() else text.encode("ascii", "replace").decode().lower()
    end, read = -1, 0
    for _, start, _ in _words().find(low):
        if start < end:
            continue
        begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[begin : min(end, begin + _RANGE * 2)]
        read += 1
        if read >= _MOST_READ:
            break
    yield from text[:_ENDS].split("\n")
    yield from text[-_ENDS:].split("\n")


@cache
def _words() -> Literals:
    return Literals([*ERROR_WORDS, TRACEBACK])
