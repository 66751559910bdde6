"""Logs that arrive after the verdict: what becomes of each note of a missing log, on both databases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from classifiers.contracts import LogStream, RawCase, Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.errors import Unavailable
from service.failures.records import AttemptLogs
from service.logs.fetch import FetchedLogs
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.pipeline.revision import Revision
from service.recommend import policy
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with, revision_with
from tests.service.pipeline.test_diagnose import ReadingClassifier, Shelf, event, only_failure

POD_JOB = "ml/Job/llm-0"


class Slow(Shelf):
    """Something happens while it fetches for the first time."""

    during_fetch: Callable[[], object] | None = None

    def fetch_all(self, events: Sequence[JobCompletion], deadline_s: float = 60.0) -> list[FetchedLogs]:
        happens, self.during_fetch = self.during_fetch, None
        if happens is not None:
            happens()
        return super().fetch_all(events, deadline_s)


class Choosy(ReadingClassifier):
    """Sure of a module that is missing, undecided about anything else; fails at a log that says so."""

    def _verdict(self, case: RawCase) -> Verdict:
        text = "".join(stream.text for stream in case.streams)
        if "unheard of" in text:
            raise ZeroDivisionError
        found = super()._verdict(case)
        return found if "ModuleNotFound" in text else replace(found, confidence=0.3, abstained=True)


@dataclass
class Bench:
    store: Store
    clock: FrozenClock
    shelf: Slow
    diagnose: Diagnose
    revision: Revision

    def pending(self) -> int:
        with self.store.reading() as reading:
            return reading.statistics.health(self.clock.at).pending_logs or 0

    def messages(self) -> list[str]:
        with self.store.unit_of_work() as work:
            return [message.type for message in work.outbox.lease("test", limit=500, seconds=0)]

    def after(self, seconds: float) -> int:
        self.clock.sleep(seconds)
        return self.revision.revise_by_late_logs()


@pytest.fixture
def bench(store: Store, clock: FrozenClock) -> Bench:
    shelf = Slow()
    tools = DiagnosisTools(store, shelf, Choosy(), policy.built_in(), clock, Telemetry())
    return Bench(store, clock, shelf, diagnose_with(tools), revision_with(tools))


def late(job: str = "7") -> JobCompletion:
    return event(job, logs=[{"rank": 0, "uri": f"/scratch/{job}.log"}])


def test_a_log_storage_that_is_down_for_half_a_day_keeps_no_late_log_from_being_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.diagnose([late()])

    def down(_: AttemptLogs) -> Sequence[LogStream]:
        raise Unavailable("the log storage does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(AttemptLogs, "readable_streams", down)
        for _ in range(60):
            assert bench.after(301) == 0
    bench.shelf.texts["/scratch/7.log"] = "ModuleNotFoundError: x"
    assert bench.after(301) == 1
    assert only_failure(bench.store).row.headline == "ModuleNotFoundError: x"
    assert bench.pending() == 0


def test_a_log_at_which_the_classifier_fails_does_not_delay_others_and_is_given_up(bench: Bench) -> None:
    bench.diagnose([late("1"), late("2"), late("3")])
    for job in ("1", "2", "3"):
        bench.shelf.texts[f"/scratch/{job}.log"] = "unheard of" if job == "1" else "ModuleNotFoundError: x"
    assert bench.after(60) == 2
    assert bench.pending() == 1
    assert bench.after(3600) == 0
    assert bench.pending() == 0


def test_a_late_log_that_says_less_than_another_attempt_leaves_the_verdict(bench: Bench) -> None:
    bench.diagnose([event(POD_JOB, pod="llm-0-a", event_id="pod-a", attempt=None)])
    logs = [{"rank": 0, "uri": "/scratch/b.log"}]
    bench.diagnose([event(POD_JOB, pod="llm-0-b", event_id="pod-b", attempt=None, logs=logs)])
    before = only_failure(bench.store)
    assert before.row.headline == f"ModuleNotFoundError in {POD_JOB}"
    bench.shelf.texts["/scratch/b.log"] = "killed by its controller"
    assert bench.after(60) == 0
    after = only_failure(bench.store)
    assert (after.row.headline, after.row.version) == (before.row.headline, before.row.version)
    assert [[one.text for one in logs.streams] for logs in after.logs][-1] == ["killed by its controller"]
    assert bench.pending() == 0


def test_a_late_log_that_says_more_than_another_attempt_replaces_the_verdict(bench: Bench) -> None:
    bench.diagnose([event(POD_JOB, pod="llm-0-a", event_id="pod-a", attempt=None, logs=[{"rank": 0, "tail": "?"}])])
    logs = [{"rank": 0, "uri": "/scratch/b.log"}]
    bench.diagnose([event(POD_JOB, pod="llm-0-b", event_id="pod-b", attempt=None, logs=logs)])
    bench.shelf.texts["/scratch/b.log"] = "ModuleNotFoundError: x"
    assert bench.after(60) == 1
    assert only_failure(bench.store).row.headline == "ModuleNotFoundError: x"


def test_two_processes_that_read_one_late_log_revise_the_verdict_once(bench: Bench) -> None:
    bench.diagnose([late()])
    bench.shelf.texts["/scratch/7.log"] = "ModuleNotFoundError: x"
    bench.clock.sleep(60)
    other: list[int] = []
    bench.shelf.during_fetch = lambda: other.append(bench.after(60))
    assert bench.revision.revise_by_late_logs() == 0
    assert other == [1]
    assert only_failure(bench.store).row.version == 2
    assert bench.messages() == ["failure.diagnosed", "failure.revised"]


def test_a_failure_that_retention_removes_meanwhile_does_not_delay_others(bench: Bench) -> None:
    bench.diagnose([late("removed")])
    bench.clock.sleep(60)
    bench.diagnose([late("first"), late("last")])
    first_of_all = bench.clock.at + timedelta(seconds=16)
    with bench.store.unit_of_work() as work:
        for attempt, seconds in ((1, 17), (2, 16), (3, 18)):
            work.pending_logs.defer(attempt, next_at=bench.clock.at + timedelta(seconds=seconds))
    bench.shelf.texts = {f"/scratch/{job}.log": "ModuleNotFoundError: x" for job in ("first", "removed", "last")}
    bench.shelf.during_fetch = lambda: bench.store.purge(rows_before=first_of_all - timedelta(seconds=40))
    assert bench.after(60) == 2
    assert bench.pending() == 0
