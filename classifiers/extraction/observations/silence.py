"""Since when a job waited or printed nothing: one that does so until its limit hangs; the limit is not too short."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from classifiers.contracts import JobFacts, RawCase
from classifiers.extraction.clocks import ClockOfLogs
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.stream_reader import StreamText, lines_with
from classifiers.observation_names import SILENT_UNTIL_LIMIT
from classifiers.relevance.entry_groups import deadlines_reached, peer_lost

_RANGE: Final = 65_536  # characters at the end of a log that are read
_LINE_RANGE: Final = 200
_FEWEST: Final = 3  # lines with a time tell how often a program prints (judgement)
# Judgement: a program that prints about every minute and says nothing for a quarter of an hour does not go on.
_LEAST_S: Final = 900.0
_TIMES_LONGER: Final = 6.0
# slurmstepd: "CANCELLED AT 2026-05-05T10:00:00 DUE TO TIME LIMIT".
_CANCELLED_AT: Final = re.compile(r"\bAT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")

_RAN_FOR: Final = re.compile(
    r"\bran for (?P<ms>\d{1,10}) milliseconds"
    r"|\b(?:in|after) (?P<waited_ms>\d{4,10}) ?ms\b"
    r"|(?i:\bno (?:new )?(?:progress|step|iteration|batch)\b[^\n]{0,20}) (?:for|in) (?P<s>\d{2,6}) ?s"
)


def silent_since(job: JobFacts, streams: Sequence[StreamText]) -> float | None:
    """Since when a job that met its limit printed nothing, in seconds into the year; None if it printed until then.

    The silence has to be several times as long as any other between two lines of the log that was written last.
    """
    limits = list(lines_with(streams, deadlines_reached()))
    if not limits:
        return None
    logs = [(one, _times_of(one)) for one in streams if not one.is_scheduler]
    times = max((times for _, times in logs if len(times) >= _FEWEST), key=lambda times: times[-1], default=None)
    last = max((times[-1] for _, times in logs if times), default=None)
    if times is None or last is None:
        return None
    stated = (_CANCELLED_AT.search(line.text) for _, line in limits)
    ends = [time for hit in stated if hit is not None and (time := time_of(hit[1])) is not None]
    end = ends[0] if ends else ClockOfLogs(RawCase(job), streams).of(job.ended_at)
    longest = max(later - earlier for earlier, later in pairwise(times))
    return last if end is not None and end - last >= max(_LEAST_S, _TIMES_LONGER * longest) else None


def stalled_since(
    raw: RawCase,
    streams: Sequence[StreamText],
    of_logs: Sequence[EvidenceItem],
    present: AbstractSet[str],
    ended: float | None,
) -> float | None:
    """When the first collective began that did not end in time, or the job fell silent; None if nothing shows that.

    A watchdog that does not print the time ends the job.
    """
    if SILENT_UNTIL_LIMIT in present:
        return silent_since(raw.job, streams)
    found = (
        time - _waited(hit)
        for item in of_logs
        if item.role in {"initiating", "cascade"}
        and (hit := _RAN_FOR.search(item.message)) is not None
        and (hit["waited_ms"] is None or is_wait(item))
        and (time := time_of(item.text) or (None if hit["ms"] else ended)) is not None
    )
    return min(found, default=None)


def _waited(hit: re.Match[str]) -> float:
    """For how many seconds something was waited, by a match of `_RAN_FOR`."""
    ms = hit["ms"] or hit["waited_ms"]
    return int(ms) / 1_000 if ms else float(hit["s"])


def is_wait(item: EvidenceItem) -> bool:
    """Whether an entry knows a line as one of a process that lost another one, or waited for it in vain."""
    return any(hit.id in peer_lost() for hit in item.hits)


def _times_of(stream: StreamText) -> list[float]:
    """The times of the lines of a log, without those of its limit."""
    lines = stream.text[-_RANGE:].split("\n")
    found = (time_of(line[:_LINE_RANGE]) for line in lines if "CANCELLED AT" not in line)
    return sorted(time for time in found if time is not None)
