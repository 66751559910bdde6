"""From a batch of events to stored verdicts: with a real store, and a fake classifier and logs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from classifiers.contracts import Evidence, LogStream, RawCase, Verdict
from service.contracts.event import JobCompletion, from_object
from service.db.session import Store
from service.dead_letters.records import DeadLetter
from service.errors import Unavailable
from service.failures.records import FailureDetail
from service.logs.fetch import FetchedLogs
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.telemetry import Telemetry
from tests.service.databases import copy_migrated, engine_of
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with, revision_with

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
GUESS = Verdict(
    side="user",
    cause="USER.1",
    cause_top=("USER.1",),
    category="EE.2",
    symptom=None,
    symptom_top=(),
    platform_symptom="crash",
    confidence=0.6,
    abstained=False,
    retry_outlook="futile",
    fingerprint="1:abc",
    explanation="A module is missing.",
    model="test",
    rules="test",
)


@dataclass
class ReadingClassifier:
    """Repeats its input, so that a test sees it; more logs give a higher confidence."""

    shown: list[RawCase] = field(default_factory=list)

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        self.shown.extend(cases)
        return [self._verdict(case) for case in cases]

    def _verdict(self, case: RawCase) -> Verdict:
        lines = [stream.text for stream in case.streams if stream.text]
        evidence = tuple(Evidence(text, "initiating") for text in lines)
        if case.job.status == "cancelled" and not lines:
            evidence = (Evidence("CANCELLED", "initiating", stream="scheduler"),)
        return replace(GUESS, evidence=evidence, confidence=0.6 + 0.1 * len(lines))


@dataclass
class Shelf:
    """Logs by URI; other logs have not arrived."""

    texts: dict[str, str] = field(default_factory=dict)

    def fetch_all(self, events: Sequence[JobCompletion], deadline_s: float = 60.0) -> list[FetchedLogs]:
        del deadline_s
        return [self._fetch(event) for event in events]

    def _fetch(self, event: JobCompletion) -> FetchedLogs:
        streams, pending = [], []
        for ref in event.logs:
            text = ref.tail if ref.tail is not None else self.texts.get(ref.uri or "")
            if text is None:
                pending.append(ref)
            streams.append(LogStream(text or "", ref.rank, missing=None if text is not None else "has not arrived"))
        return FetchedLogs(tuple(streams), tuple(pending))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(copy_migrated(tmp_path / "store.sqlite3"), clock=FrozenClock(NOW))
    yield made
    made.close()


@dataclass
class Bench:
    store: Store
    clock: FrozenClock
    classifier: ReadingClassifier
    shelf: Shelf
    tools: DiagnosisTools
    diagnose: Diagnose


@pytest.fixture
def bench(store: Store) -> Bench:
    clock, classifier, shelf = FrozenClock(NOW), ReadingClassifier(), Shelf()
    tools = DiagnosisTools(store, shelf, classifier, policy.built_in(), clock, Telemetry())
    return Bench(store, clock, classifier, shelf, tools, diagnose_with(tools))


def event(job: str = "7", **changes: Any) -> JobCompletion:
    plain = {
        "cluster": "orion",
        "job_id": job,
        "attempt": 0,
        "status": "failed",
        "ended_at": "2026-11-20T10:00:00Z",
        "logs": [{"rank": 0, "tail": f"ModuleNotFoundError in {job}"}],
    }
    return from_object(plain | changes)


def only_failure(store: Store) -> FailureDetail:
    with store.reading() as reading:
        [row] = reading.failures.page().items
        return reading.failures.get(row.id)


def failures(store: Store) -> int:
    with store.reading() as reading:
        return len(reading.failures.page().items)


def test_a_failed_job_is_stored_with_verdict_advice_and_log(bench: Bench) -> None:
    outcome = bench.diagnose([event()])
    detail = only_failure(bench.store)
    assert outcome.events[0].kind == "accepted"
    assert outcome.events[0].failure_id == detail.row.id
    assert detail.verdict is not None
    assert (detail.verdict["schema"], detail.verdict["decision"]) == ("verdict/1", "stop")
    assert detail.logs[0].streams[0].text == "ModuleNotFoundError in 7"
    assert "tail" not in str(detail.logs[0].event["logs"])


def test_a_succeeded_job_counts_and_carries_no_verdict(bench: Bench) -> None:
    outcome = bench.diagnose([event(status="succeeded", logs=[])])
    assert outcome.events[0].failure_id is None
    assert bench.classifier.shown == []
    with bench.store.reading() as reading:
        assert reading.statistics.stats(NOW - timedelta(days=1), NOW).succeeded == 1


def test_the_same_event_again_changes_nothing_and_is_not_classified_again(bench: Bench) -> None:
    first = bench.diagnose([event()])
    again = bench.diagnose([event(), event()])
    assert [outcome.kind for outcome in again.events] == ["duplicate", "duplicate"]
    assert again.events[0].failure_id == first.events[0].failure_id
    assert len(bench.classifier.shown) == 1
    assert failures(bench.store) == 1


def test_the_same_id_with_other_content_is_a_conflict_and_the_first_stays(bench: Bench) -> None:
    bench.diagnose([event(event_id="a")])
    outcome = bench.diagnose([event(event_id="a", name="other")])
    assert outcome.events[0].kind == "conflict"
    assert only_failure(bench.store).row.name is None
    with bench.store.reading() as reading:
        assert reading.jobs.attempts("orion", "7")[0].conflicts == 1


def test_two_contents_of_one_id_within_a_batch(bench: Bench) -> None:
    outcome = bench.diagnose([event(event_id="a", name="first"), event(event_id="a", name="second")])
    assert [item.kind for item in outcome.events] == ["accepted", "conflict"]
    assert only_failure(bench.store).row.name == "first"


@pytest.mark.parametrize(("logs", "kept"), [([{"rank": 0, "tail": "Traceback"}], 1), ([], 0)])
def test_a_cancelled_job_has_a_verdict_only_if_its_log_shows_an_earlier_failure(
    bench: Bench, logs: list[dict[str, Any]], kept: int
) -> None:
    bench.diagnose([event(status="cancelled", logs=logs)])
    assert failures(bench.store) == kept
    if kept:
        assert only_failure(bench.store).row.decision == "stop"


def test_secrets_in_free_text_never_reach_the_store(bench: Bench, tmp_path: Path) -> None:
    secret = "ghp_" + "Ab1" * 12
    bench.diagnose(
        [
            event(
                message=f"token {secret}",
                name=f"x {secret}",
                labels={"t": secret},
                command=f"run --token={secret}",
                node_events=[{"text": f"env {secret}"}],
                custom={"deep": [f"token={secret}"]},
            ),
            event("8", status="succeeded", name=f"GITHUB_TOKEN={secret}", logs=[]),
        ]
    )
    bench.store.close()
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.iterdir())
    assert secret not in str(bench.classifier.shown)


def test_a_late_log_revises_the_verdict(bench: Bench) -> None:
    bench.diagnose([event(logs=[{"rank": 0, "uri": "/scratch/7.log"}])])
    assert only_failure(bench.store).row.version == 1
    assert revision_with(bench.tools).revise_by_late_logs() == 0, "not due yet"
    bench.shelf.texts["/scratch/7.log"] = "ImportError: libfoo.so"
    assert [again_after(bench, seconds) for seconds in (60, 3600)] == [1, 0]
    detail = only_failure(bench.store)
    assert detail.row.version == 2
    assert detail.row.headline == "ImportError: libfoo.so"
    assert [stream.text for stream in detail.logs[0].streams] == ["ImportError: libfoo.so"]


def again_after(bench: Bench, seconds: float) -> int:
    """Try to fetch logs so much later; returns the number of revised verdicts."""
    bench.clock.sleep(seconds)
    later = Store(str(engine_of(bench.store).url), clock=bench.clock)
    try:
        return revision_with(replace(bench.tools, store=later)).revise_by_late_logs()
    finally:
        later.close()


def just_ended(bench: Bench, status: str = "timeout", seconds_ago: float = 1, **more: Any) -> JobCompletion:
    ended_at = (bench.clock.now() - timedelta(seconds=seconds_ago)).isoformat()
    logs = [{"rank": 0, "uri": "/scratch/7.log"}, {"rank": 1, "tail": "step 1"}]
    return event(status=status, ended_at=ended_at, **{"logs": logs} | more)


def test_what_a_job_writes_while_its_scheduler_stops_it_is_read(bench: Bench) -> None:
    bench.shelf.texts["/scratch/7.log"] = "step 1"
    bench.diagnose([just_ended(bench)])
    bench.shelf.texts["/scratch/7.log"] = "step 1\nCANCELLED DUE TO TIME LIMIT"
    assert again_after(bench, 20) == 0, "the nodes may still be stopping the job"
    assert again_after(bench, 30) == 1
    detail = only_failure(bench.store)
    assert detail.row.version == 2
    assert {one.text for one in detail.logs[0].streams} == {"step 1\nCANCELLED DUE TO TIME LIMIT", "step 1"}
    assert again_after(bench, 3600) == 0


@pytest.mark.parametrize("text", ["step 1", None], ids=["unchanged", "deleted meanwhile"])
def test_a_log_that_says_nothing_new_leaves_the_verdict(bench: Bench, text: str | None) -> None:
    bench.shelf.texts["/scratch/7.log"] = "step 1"
    bench.diagnose([just_ended(bench)])
    bench.shelf.texts = {} if text is None else {"/scratch/7.log": text}
    assert [again_after(bench, seconds) for seconds in (60, 3600)] == [0, 0]
    detail = only_failure(bench.store)
    assert detail.row.version == 1
    assert [one.text for one in detail.logs[0].streams] == ["step 1", "step 1"]
    with bench.store.reading() as reading:
        assert reading.statistics.health(NOW - timedelta(days=1)).pending_logs == 0


@pytest.mark.parametrize(
    "other",
    [
        {"status": "failed"},
        {"seconds_ago": 60},
        {"logs": [{"rank": 0, "uri": "/scratch/7.log"}, {"rank": 0, "tail": "step 1"}]},
    ],
    ids=["ended by itself", "ended long ago", "two logs of one rank and stream"],
)
def test_a_log_that_is_complete_is_read_once(bench: Bench, other: dict[str, Any]) -> None:
    bench.shelf.texts["/scratch/7.log"] = "step 1"
    bench.diagnose([just_ended(bench, **other)])
    bench.shelf.texts["/scratch/7.log"] = "another text"
    assert again_after(bench, 3600) == 0


def test_a_pod_that_failed_under_a_job_is_an_attempt_not_a_second_failure(bench: Bench) -> None:
    job = "ml/Job/llm-0"
    bench.diagnose([event(job, pod="llm-0-x7k2p", event_id="pod-1", attempt=None)])
    bench.diagnose([event(job, event_id="job-1", attempt=None, logs=[], reason="BackoffLimitExceeded")])
    detail = only_failure(bench.store)
    assert len(detail.attempts) == 2
    assert sum(attempt.counted for attempt in detail.attempts) == 1
    assert detail.row.headline == f"ModuleNotFoundError in {job}", "the Job's own end knows less"


def test_a_pod_that_arrives_after_its_job_revises_the_verdict(bench: Bench) -> None:
    job = "ml/Job/llm-0"
    bench.diagnose([event(job, event_id="job-1", attempt=None, logs=[])])
    bench.diagnose([event(job, pod="llm-0-x7k2p", event_id="pod-1", attempt=None)])
    detail = only_failure(bench.store)
    assert (detail.row.version, detail.row.headline) == (2, f"ModuleNotFoundError in {job}")


def test_dead_letters_are_stored_with_the_batch(bench: Bench) -> None:
    outcome = bench.diagnose([event()], [DeadLetter("{", "00", "jobs/0/17", "truncated JSON")])
    assert len(outcome.dead_letters) == 1
    with bench.store.reading() as reading:
        assert reading.dead_letters.get(outcome.dead_letters[0]).place == "jobs/0/17"


def test_failures_whose_logs_could_not_be_read_are_counted(bench: Bench) -> None:
    """The alert about logs compares them with all verdicts."""
    unread = [{"rank": rank, "uri": f"/scratch/{rank}.log"} for rank in range(3)]
    bench.diagnose([event("1"), event("2", logs=unread), event("3", status="succeeded", logs=unread)])
    bench.diagnose([event("2", logs=unread)])
    registry = bench.tools.telemetry.registry
    assert registry.get_sample_value("faultline_logs_missing_total") == 1


def test_a_database_failure_leaves_no_partial_data(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Callable[..., Any]:
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr("service.deliveries.repository.outbox.OutboxRepository.add", fail)
        with pytest.raises(Unavailable):
            bench.diagnose([event()])
    assert failures(bench.store) == 0
    assert bench.diagnose([event()]).events[0].kind == "accepted"
    assert failures(bench.store) == 1


def test_messages_name_the_failure_without_bulky_parts(bench: Bench) -> None:
    bench.diagnose([event()])
    with bench.store.unit_of_work() as work:
        [message] = work.outbox.lease("test", limit=10, seconds=60)
    assert (message.type, message.key) == ("failure.diagnosed", "orion/7")
    assert message.payload["headline"] == "ModuleNotFoundError in 7"
    assert "evidence" not in message.payload["verdict"]


def test_a_signed_address_is_not_stored(bench: Bench, tmp_path: Path) -> None:
    signature = "X-Amz-Signature=" + "9f" * 32
    bench.diagnose([event(logs=[{"rank": 0, "uri": f"https://logs.example/7?{signature}"}])])
    with bench.store.reading() as reading:
        assert reading.statistics.health(NOW - timedelta(days=1)).pending_logs == 0
    bench.store.close()
    assert all(("9f" * 32).encode() not in path.read_bytes() for path in tmp_path.iterdir())
    assert ("9f" * 32) not in str(only_failure(bench.store).logs[0].event)
