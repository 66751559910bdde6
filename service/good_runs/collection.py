"""Collects the lines of successful jobs, and finds those of the last good run for a failed job."""

from collections.abc import Sequence
from typing import Final, Literal

from classifiers.contracts import GoodRun
from classifiers.last_good_run import good_run
from service.contracts.event import JobCompletion, Status
from service.db.session import ReadSession
from service.good_runs.repository import JobName, StoredGoodRun
from service.logs.fetch import LogReader

GoodRunLogs = Literal["off", "inline", "all"]
LOGS_OF_A_RUN: Final = 64  # streams that are read (judgement: ranks print the same lines)


def job_name(event: JobCompletion) -> JobName | None:
    """What makes two events runs of the same job; None without user or name."""
    return (event.cluster, event.user, event.name) if event.user and event.name else None


class GoodRuns:
    """The good runs of jobs.

    Args:
        logs: the log reader.
        read: which logs of successful jobs are read: none, the tails that events carry, or those given by URI too.
    """

    def __init__(self, logs: LogReader, read: GoodRunLogs = "inline") -> None:
        self._logs = logs
        self._read = read

    def of_successes(self, events: Sequence[JobCompletion], deadline_s: float) -> list[StoredGoodRun]:
        """The lines of the successful jobs among `events` whose logs can be read; their texts must be cleaned."""
        if self._read == "off":
            return []
        wanted: dict[JobName, JobCompletion] = {}
        for event in events:
            key = job_name(event)
            if event.status is not Status.SUCCEEDED or key is None:
                continue
            logs = tuple(one for one in event.logs if one.kind in {None, "log"} and self._is_read(one.tail))
            if logs and (key not in wanted or wanted[key].ended_at <= event.ended_at):
                wanted[key] = event.model_copy(update={"logs": logs[:LOGS_OF_A_RUN]})
        if not wanted:
            return []
        fetched = self._logs.fetch_all(list(wanted.values()), deadline_s)
        found = []
        for (key, event), logs_of in zip(wanted.items(), fetched, strict=True):
            run = good_run((stream.text for stream in logs_of.streams), event.job_id)
            if run.lines:
                found.append(StoredGoodRun(key, run, event.ended_at))
        return found

    def _is_read(self, tail: str | None) -> bool:
        return tail is not None or self._read == "all"


def last_good_runs(reading: ReadSession, events: Sequence[JobCompletion]) -> list[GoodRun | None]:
    """The last good run of the job of each event that ended before it, in order."""
    keys = [job_name(event) for event in events]
    wanted = {key for key in keys if key is not None}
    if not wanted:
        return [None] * len(events)
    stored = reading.good_runs.of(wanted)
    found = []
    for event, key in zip(events, keys, strict=True):
        one = None if key is None else stored.get(key)
        found.append(one.run if one is not None and one.ended_at <= event.ended_at else None)
    return found
