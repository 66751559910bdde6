"""Drift monitoring on stored failures: one report an hour for all processes, as metrics."""

from datetime import timedelta

from service.db.session import Store
from service.drift.watch import DriftWatch, report_of
from service.feedback.records import FeedbackKind, Labels, NewFeedback
from service.telemetry import Telemetry
from tests.service.drift.samples import OLD, stored
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put

NOTHING = Labels()


def judged(store: Store, number: int, kind: FeedbackKind, labels: Labels = NOTHING) -> None:
    with store.unit_of_work() as work:
        work.feedback.add(NewFeedback(number, "ana", kind, 1, "user", "USER.1", labels))


def test_new_words_lines_versions_contests_and_corrections_are_reported(store: Store, clock: FrozenClock) -> None:
    recent = stored(store, clock)
    for number in recent[:24]:
        judged(store, number, "contest")
    for number in recent[16:]:
        judged(store, number, "correct", Labels("system", "SYS.5"))
    judged(store, recent[3], "confirm", Labels("user", "USER.1"))
    [cluster] = report_of(store, NOON).clusters
    assert (cluster.failures, cluster.reference_failures) == (40, 40)
    values = {one.measure: (one.recent.value if one.recent else None, one.change) for one in cluster.figures}
    assert values["unknown_words"] == (0.55, 1)
    assert values["unmatched_lines"] == (0.9, 1)
    assert values["contested"] == (0.6, 1)
    assert values["corrected"] == (0.6, 1)
    assert values["abstained"][1] == 0
    assert values["confidence"] == (None, 0)
    [new] = cluster.versions
    assert (new.version, new.failures, new.first.failure) == ("NCCL 2.22.3", 40, min(recent))
    examples = next(one.examples for one in cluster.figures if one.measure == "unknown_words")
    assert {one.failure for one in examples} <= set(recent)
    assert all(one.headline for one in examples)


def test_more_logs_replace_the_measures_of_a_failure(store: Store, clock: FrozenClock) -> None:
    recent = stored(store, clock)
    with store.unit_of_work() as work:
        for number in recent:
            work.drift.replace(number, OLD)
        work.drift.replace(recent[0], None)
    [cluster] = report_of(store, NOON).clusters
    assert cluster.versions == ()
    assert cluster.changed == ()


def test_one_process_makes_the_report_of_an_hour_and_all_publish_it(store: Store, clock: FrozenClock) -> None:
    stored(store, clock)
    metrics = [Telemetry(), Telemetry()]
    first, second = (DriftWatch(store, clock, one) for one in metrics)
    texts = []
    for watch, shown in ((first, metrics[0]), (second, metrics[1]), (first, metrics[0])):
        watch()
        texts.append(shown.render().decode())
    for text in texts:
        assert 'faultline_drift_changed{cluster="orion",measure="unknown_words"} 1.0' in text
        assert 'faultline_drift_share{cluster="orion",measure="unknown_words",window="reference"} 0.05' in text
        assert 'faultline_drift_new_versions{cluster="orion"} 1.0' in text
    with store.reading() as reading:
        assert reading.drift.latest_id() == 1
    clock.at += timedelta(hours=1)
    second()
    with store.reading() as reading:
        assert reading.drift.latest_id() == 2
        newest = reading.drift.latest()
    assert newest is not None
    assert newest.at == clock.at
    with store.unit_of_work() as work:
        for _ in range(120):
            work.drift.store(newest)
        assert work.drift.latest_id() > 100


def test_audits_of_a_week_that_begins_before_the_period_count_as_in_their_week(
    store: Store, clock: FrozenClock
) -> None:
    clock.at = NOON
    ends = [NOON - timedelta(days=29), *(NOON - timedelta(days=26, hours=n) for n in range(2))]
    ids = [outcome.failure_id or 0 for outcome in put(store, [job(f"in{n}", ended_at=at) for n, at in enumerate(ends)])]
    with store.unit_of_work() as work:
        assert work.audit_samples.draw("2026-W43", NOON - timedelta(days=35), NOON - timedelta(days=20), 3) == 3
        for number in ids:
            given, _ = work.feedback.add(
                NewFeedback(number, "ana", "audit", 1, "user", "USER.1", Labels("user", "USER.1"), model_shown=False)
            )
            assert work.audit_samples.audited("2026-W43", number, given)
        found = work.drift.audited(NOON - timedelta(days=28), NOON)
    assert [one.weight for one in found] == [1.0, 1.0], "three failures, three audits"
