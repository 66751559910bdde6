"""The lines of successful jobs are stored, found for the same job's next failure, and removed with its logs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from classifiers.contracts import GoodRun, RawCase, Verdict
from classifiers.line_hashes import has_line
from service.contracts.event import JobCompletion, from_object
from service.db.session import Store
from service.good_runs.collection import GoodRunLogs, GoodRuns, last_good_runs
from service.good_runs.repository import StoredGoodRun
from service.logs.fetch import LogFetcher
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.pipeline.test_diagnose import GUESS
from tests.service.sample_rows import NOON

LINE = "ERROR decoder: cannot identify the image file"


def event(job: str, status: str, *, hours: int = 0, tail: str | None = LINE, **changes: Any) -> JobCompletion:
    ended = (NOON + timedelta(hours=hours)).isoformat()
    logs = [{"rank": 0, "tail": tail}] if tail is not None else [{"rank": 0, "uri": "/logs/of/nothing"}]
    plain = {"cluster": "orion", "job_id": job, "status": status, "ended_at": ended, "user": "ana", "name": "nightly"}
    return from_object(plain | {"logs": logs} | changes)


class Recorder:
    """Keeps the cases that it is given."""

    def __init__(self) -> None:
        self.cases: list[RawCase] = []

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        self.cases += cases
        return [replace(GUESS) for _ in cases]


def handled(store: Store, *events: JobCompletion, read: GoodRunLogs = "inline") -> list[RawCase]:
    """The cases that the classifier reads, each event a batch of its own."""
    recorder, logs = Recorder(), LogFetcher(())
    good = GoodRuns(logs, read)
    clock = FrozenClock(NOON + timedelta(days=2))
    diagnose = diagnose_with(DiagnosisTools(store, logs, recorder, policy.built_in(), clock, Telemetry()), good)
    for one in events:
        diagnose([one])
    return recorder.cases


def test_a_failure_is_compared_with_the_last_good_run_of_the_job(store: Store) -> None:
    [case] = handled(store, event("1", "succeeded"), event("2", "failed", hours=1))
    assert case.good_run is not None
    assert case.good_run.job_id == "1"
    assert has_line(case.good_run, LINE)


@pytest.mark.parametrize(
    "changes", [{"name": "other"}, {"user": "ben"}, {"cluster": "lyra"}, {"name": None}, {"hours": -1}]
)
def test_other_jobs_and_later_runs_are_not_compared(store: Store, changes: dict[str, Any]) -> None:
    [case] = handled(store, event("1", "succeeded"), event("2", "failed", **{"hours": 1, **changes}))
    assert case.good_run is None


def test_the_latest_good_run_counts_whatever_the_order_of_arrival(store: Store) -> None:
    late = event("3", "succeeded", hours=2, tail="WARNING lost contact with the tracker, retry")
    [case] = handled(store, late, event("1", "succeeded"), event("4", "failed", hours=3))
    assert case.good_run is not None
    assert case.good_run.job_id == "3"


@pytest.mark.parametrize(("read", "tail"), [("off", LINE), ("inline", None)])
def test_logs_that_the_setting_excludes_are_not_read(store: Store, read: GoodRunLogs, tail: str | None) -> None:
    [case] = handled(store, event("1", "succeeded", tail=tail), event("2", "failed", hours=1), read=read)
    assert case.good_run is None


def test_logs_by_address_are_read_where_the_setting_says_so(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(LINE)
    logs = LogFetcher([str(tmp_path)], any_owner=[str(tmp_path)])
    good = event("1", "succeeded", logs=[{"rank": 0, "uri": str(path)}])
    [found] = GoodRuns(logs, "all").of_successes([good], 10.0)
    assert has_line(found.run, LINE)
    assert GoodRuns(logs, "inline").of_successes([good], 10.0) == []


def test_good_runs_are_removed_with_logs(store: Store) -> None:
    key = ("orion", "ana", "nightly")
    with store.unit_of_work() as work:
        work.good_runs.put([StoredGoodRun(key, GoodRun(frozenset({b"12345678"}), "1"), NOON)])
    store.purge(logs_before=NOON)
    with store.reading() as reading:
        assert last_good_runs(reading, [event("2", "failed", hours=1)]) != [None]
    store.purge(logs_before=NOON + timedelta(seconds=1))
    with store.reading() as reading:
        assert last_good_runs(reading, [event("2", "failed", hours=1)]) == [None]
