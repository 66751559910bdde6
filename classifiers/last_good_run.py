"""The lines of a job's last good run: a line that stood in it does not show why a later run failed.

The lines are kept as hashes (`classifiers.line_hashes`). Of a long log only lines with words of failure and the lines
at both ends are kept: extraction reads no others.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from classifiers.contracts import GoodRun, LogStream
from classifiers.extraction.envelopes.unwrapping import unwrapped
from classifiers.extraction.line_headers import strip_colors
from classifiers.extraction.scan import ERROR_WORDS, TRACEBACK
from classifiers.line_hashes import ENDS, HASH_BYTES, LAST_LINES, hash_line
from classifiers.patterns.literal_search import Literals

# All of these are a judgement; they bound the time of a log full of errors.
MOST_LINES: Final = 4_096  # that are kept of a run
_MOST_READ: Final = 20_000  # lines
_RANGE: Final = 800  # characters of a line
_WHOLE: Final = 10_000  # characters; of a log up to this length all lines are kept


def good_run(texts: Iterable[str], job_id: str | None = None) -> GoodRun:
    """Return the lines of a run without failure.

    Args:
        texts: its logs.
        job_id: its job, shown where one of its lines is set aside.
    """
    found: dict[bytes | None, None] = {}
    for raw in texts:
        text = unwrapped(LogStream(strip_colors(raw))).text
        found.update(dict.fromkeys(hash_line(line, at_end=True) for line in _last_lines(text)))
        for line in _lines_to_keep(text):
            found[hash_line(line, at_end=False)] = None
            if len(found) > MOST_LINES:
                break
    lines = [line for line in found if line is not None]
    return GoodRun(frozenset(lines[:MOST_LINES]), job_id)


def to_bytes(run: GoodRun) -> bytes:
    """Return the hashes of a run, `HASH_BYTES` each, sorted."""
    return b"".join(sorted(run.lines))


def from_bytes(data: bytes, job_id: str | None = None) -> GoodRun:
    """Return the run of what `to_bytes` returned."""
    places = range(0, len(data) - len(data) % HASH_BYTES, HASH_BYTES)
    return GoodRun(frozenset(data[at : at + HASH_BYTES] for at in places), job_id)


def _last_lines(text: str) -> list[str]:
    return [line for line in text[-ENDS:].split("\n") if line.strip()][-LAST_LINES:]


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
        yield text[begin : min(end, begin + _RANGE)]
        read += 1
        if read >= _MOST_READ:
            break
    yield from text[:ENDS].split("\n")
    yield from text[-ENDS:].split("\n")


@cache
def _words() -> Literals:
    return Literals([*ERROR_WORDS, TRACEBACK])
