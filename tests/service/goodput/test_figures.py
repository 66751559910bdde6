"""The figures of a hand-made stream equal a plain computation over its attempts, on both databases."""

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.goodput import definitions, figures
from service.goodput.records import Goodput
from service.incidents.records import NewIncident
from service.jobs.records import NewJob
from service.statistics.records import Scope
from tests.service.frozen_clock import FrozenClock
from tests.service.goodput.sample_stream import BERLIN, DELAY, FIRST, HARDWARE, LAST, STREAM, WEEK, at, attempt, fill
from tests.service.sample_rows import job, put, succeeded

EVERYTHING = Scope()
FAILED = {"failed", "timeout", "out_of_memory", "node_fail", "evicted", "hung"}


def read(store: Store, scope: Scope = EVERYTHING) -> Goodput:
    with store.reading() as reading:
        return figures.compute(reading.goodput.counts(WEEK.days(BERLIN), scope), scope)


def inside(scope: Scope = EVERYTHING) -> list[tuple[NewJob, dict[str, object]]]:
    return [
        (row, verdict)
        for row, verdict in STREAM
        if FIRST <= row.ended_at < LAST
        and scope.cluster in {None, row.cluster}
        and scope.team in {None, row.team}
        and scope.queue in {None, row.queue}
    ]


def ran(row: NewJob) -> float:
    """Hours that an attempt ran; 0 if its size or start is not known."""
    return (row.ended_at - row.started_at).total_seconds() / 3600 if row.gpus and row.started_at else 0.0


def held(row: NewJob) -> float:
    return ran(row) * (row.gpus or 0)


def side_of(row: NewJob, verdict: dict[str, object]) -> str:
    if not row.diagnosed or verdict.get("abstained"):
        return "unknown"
    return str(verdict.get("side", "user"))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("scope", [Scope(), Scope(cluster="orion"), Scope(team="nlp"), Scope(queue="gpu-long")])
def test_gpu_hours_equal_a_plain_sum(store: Store, clock: FrozenClock, scope: Scope, *, backwards: bool) -> None:
    fill(store, clock, backwards=backwards)
    found, rows = read(store, scope), inside(scope)
    failed = [(row, verdict) for row, verdict in rows if row.status in FAILED]
    assert found.attempts == len(rows)
    assert found.unmeasured == sum(held(row) == 0 for row, _ in rows)
    assert found.held == pytest.approx(sum(held(row) for row, _ in rows))
    assert found.lost == pytest.approx(sum(row.gpu_hours_lost for row, _ in failed))
    assert found.lost_to_preemption == sum(row.gpu_hours_lost for row, _ in rows if row.status == "preempted")
    assert found.lost_to_cancellation == sum(row.gpu_hours_lost for row, _ in rows if row.status == "cancelled")
    assert found.delivered + found.lost + found.lost_to_preemption + found.lost_to_cancellation == pytest.approx(
        found.held
    )
    by_side: defaultdict[str, float] = defaultdict(float)
    for row, verdict in failed:
        by_side[side_of(row, verdict)] += row.gpu_hours_lost
    lost = defaultdict[str, float](float)
    for one in found.lost_by_cause:
        lost[one.side] += one.gpu_hours
    assert lost == pytest.approx(by_side)
    node_days = sum(ran(row) * len(row.nodes) for row, _ in rows) / 24
    assert found.node_days == pytest.approx(node_days)
    hardware = [row for row, verdict in failed if side_of(row, verdict) == "hardware"]
    assert found.hardware_failures == len(hardware)
    assert found.failures_per_1000_node_days is not None
    assert found.failures_per_1000_node_days.value == pytest.approx(1000 * len(hardware) / node_days)
    assert sum(one.held for one in found.trend) == pytest.approx(found.held)


def test_known_answers_of_the_stream(store: Store, clock: FrozenClock) -> None:
    fill(store, clock)
    found = read(store, Scope(cluster="orion"))
    assert found.restarts == {0: 12, 1: 2, 2: 1}
    assert (found.lineages, found.restarts_most) == (15, 2)
    assert found.restarts_mean == pytest.approx(4 / 15)
    # 0.25 h, 0.5 h, 1 h and 1.5 h after the failed attempts of d.1, b.0, d.0 and c.
    assert (found.times.to_restart.count, found.times.to_restart.median, found.times.to_restart.high) == (4, 1800, 5400)
    verdicts = found.times.to_verdict
    assert (verdicts.count, verdicts.median, verdicts.high) == (8, 90, 90)
    assert (found.times.hang.count, found.times.hang.median) == (1, 7200)
    assert {(one.side, one.cause): one.count for one in found.interruptions} == {
        ("hardware", "HW.GPU.2"): 4,
        ("system", "SYS.5"): 1,
    }
    assert sum(one.share for one in found.interruptions) == pytest.approx(1)
    by_size = {one.gpus: one for one in found.sizes}
    assert by_size[16].failures == 1
    assert by_size[16].job_hours == pytest.approx(28.5)
    assert by_size[16].mttf_hours is not None
    assert by_size[16].mttf_hours.value == pytest.approx(28.5)
    assert found.ettr_long == pytest.approx(27.5 / 29)
    assert found.long_runs == 1


def test_ettr_equals_a_plain_computation(store: Store, clock: FrozenClock) -> None:
    fill(store, clock)
    runs: defaultdict[tuple[str, str, str | None], list[NewJob]] = defaultdict(list)
    for row, _ in inside():
        runs[row.cluster, "c" if row.job_id == "c2" else row.job_id, row.user].append(row)
    productive = available = 0.0
    for attempts in runs.values():
        attempts.sort(key=lambda one: one.started_at or one.ended_at)
        ends = [FIRST - timedelta(days=9), *(one.ended_at for one in attempts)]
        for previous_end, row in zip(ends, attempts, strict=False):
            if not row.gpus or row.started_at is None:
                continue
            eligible = max(row.submitted_at or previous_end, previous_end)
            queued = max((row.started_at - eligible).total_seconds() / 3600, 0)
            productive += held(row) - row.gpu_hours_lost
            available += row.gpus * (ran(row) + queued)
    assert read(store).ettr == pytest.approx(productive / available)


def test_the_days_of_the_trend_follow_the_time_zone(store: Store, clock: FrozenClock) -> None:
    fill(store, clock)
    days: Counter[int] = Counter()
    for row, _ in inside():
        days[row.ended_at.astimezone(BERLIN).weekday()] += round(held(row) * 3600)
    found = read(store)
    assert [round(one.held * 3600) for one in found.trend] == [days[day] for day in range(7)]
    assert found.trend[-1].until - found.trend[-1].since == timedelta(hours=25)


def test_incidents_and_their_time_to_close(store: Store, clock: FrozenClock) -> None:
    clock.at = FIRST + timedelta(hours=1)
    with store.unit_of_work() as work:
        for name in ("a", "b"):
            work.incidents.open(
                NewIncident(name, "file_system", name, "orion", "SYS.5", name, by="policy", probe_at=None)
            )
    clock.at += timedelta(minutes=40)
    with store.unit_of_work() as work:
        work.incidents.change(work.incidents.opened()[0].id, closed_at=clock.at, closed_by="ana")
    found = read(store)
    assert (found.incidents.opened, found.incidents.closed, found.incidents.to_close.median) == (2, 1, 2400)
    assert read(store, Scope(cluster="vega")).incidents.opened == 0


def test_an_empty_period_has_no_shares(store: Store) -> None:
    found = read(store)
    assert (found.attempts, found.held, found.goodput, found.ettr, found.restarts_mean) == (0, 0.0, None, None, None)
    assert (found.failures_per_1000_node_days, found.projections, found.interruptions) == (None, (), ())


def test_a_period_in_which_everything_was_lost_has_no_goodput(store: Store) -> None:
    ended = FIRST + timedelta(days=3)
    started = ended - timedelta(hours=2, seconds=-400)
    lost = round(8 * (ended - started).total_seconds() / 3600, 4)
    assert lost < 8 * (ended - started).total_seconds() / 3600, "stored rounded down"
    put(store, [job("a", ended_at=ended, started_at=started, gpus=8, gpu_hours_lost=lost)])
    found = read(store)
    assert (found.goodput, found.delivered) == (0.0, 0.0)
    assert {part.goodput for part in found.trend} == {0.0, None}


def test_events_imported_later_do_not_count_as_slow_verdicts(store: Store, clock: FrozenClock) -> None:
    ended = FIRST + timedelta(hours=1)
    clock.at = ended + timedelta(days=20)
    put(store, [job("old", ended_at=ended, received_at=clock.at)], **HARDWARE)
    assert read(store).times.to_verdict.count == 0


def test_a_run_does_not_wait_in_the_queue_while_it_runs(store: Store, clock: FrozenClock) -> None:
    """Its first attempt ended before the week; the second one keeps the time of the submission."""
    rows = [
        attempt(job, "a.0", -24, -1, 8, submitted_at=at(-25)),
        attempt(succeeded, "a.1", 1, 5, 8, submitted_at=at(-25), attempt=1),
    ]
    for row in rows:
        clock.at = row.ended_at + DELAY
        put(store, [row])
    found = read(store)
    assert (found.attempts, found.lineages, found.restarts_most) == (1, 1, 0)
    assert found.ettr == pytest.approx(4 / 6), "two hours in the queue and four of work"


@pytest.mark.parametrize(("changes", "runs"), [({}, 2), ({"name": "other"}, 2), ({"attempt": 1}, 1)], ids=str)
def test_a_job_id_that_is_used_again_is_another_run(store: Store, changes: dict[str, Any], runs: int) -> None:
    put(store, [replace(attempt(job, "a.0", 1, 2, 8), name="eval")])
    put(store, [replace(attempt(succeeded, "a.1", 73, 74, 8), **({"name": "eval"} | changes))])
    found = read(store)
    assert (found.lineages, found.restarts_most) == (runs, 2 - runs)
    assert found.times.to_restart.count == 2 - runs


def test_all_14_kinds_of_lost_time_of_the_goodput_library_are_mapped_or_said_to_be_unknown() -> None:
    kinds = {one.code: one.measured for one in definitions.load().categories}
    assert len(kinds) == 14
    assert {code for code in kinds if code.startswith("ELASTIC_")} == {
        "ELASTIC_SLICE_DOWN",
        "ELASTIC_SCALE_UP",
        "ELASTIC_REINITIALIZATION",
    }
    assert [code for code, measured in kinds.items() if measured] == [
        "WASTED_PROGRESS_FROM_DISRUPTION",
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
        "OTHER",
    ]
