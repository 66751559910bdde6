"""Counts that a process keeps are those of the database, whoever counts hours again."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import event

from service.db.session import Store
from service.statistics.count_cache import CountCache
from service.statistics.records import PeriodCount, Scope, Stats
from service.statistics.repository import rollups, versions
from service.statistics.tables import day_counts, hour_counts
from tests.service.databases import connection_of, engine_of
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UNTIL = NOON + 5 * timedelta(minutes=1)
Figures = dict[tuple[float, Scope], tuple[Stats, Stats, tuple[PeriodCount, ...]]]


def count(store: Store) -> int:
    with store.unit_of_work() as work:
        return work.rollups.recount(NOON, limit=1_000)


def figures(store: Store) -> Figures:
    """What the overview shows of several periods and scopes."""
    found: Figures = {}
    for length in (0.5, 1, 3, 7, 28, 365):
        for scope in (Scope(), Scope(cluster="orion"), Scope(team="t1", queue="q1")):
            since = UNTIL - length * DAY
            with store.reading() as reading:
                parts = reading.statistics.series(since, UNTIL, scope)
                own = reading.statistics.stats(since, UNTIL, scope)
                before = reading.statistics.stats(since - length * DAY, since, scope, "status")
            found[length, scope] = own, before, parts
    return found


def from_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> Figures:
    with monkeypatch.context() as patched:
        patched.setattr(rollups, "SHORT", timedelta(days=10_000))
        return figures(store)


def fill(store: Store) -> list[int]:
    ids = []
    for number in range(80):
        ended = NOON - timedelta(hours=9 * number, minutes=number)
        made = (job if number % 3 else succeeded)(
            str(number),
            ended_at=ended,
            cluster=("orion", "vega")[number % 2],
            team=f"t{number % 3}",
            queue=f"q{number % 2}",
            gpu_hours_lost=float(number % 5),
        )
        ids += [one.failure_id for one in put(store, [made], abstained=number % 4 == 0) if one.failure_id]
    return ids


@pytest.fixture
def statements(store: Store) -> Iterator[list[str]]:
    """The statements of the store that read hours or days."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM hours" in statement or ("FROM days" in statement and "hour_notes" not in statement):
            found.append(statement)

    event.listen(engine_of(store), "before_cursor_execute", note)
    yield found
    event.remove(engine_of(store), "before_cursor_execute", note)


def test_the_same_period_reads_no_hours_again(store: Store, statements: list[str]) -> None:
    fill(store)
    count(store)
    wanted = figures(store)
    assert statements
    statements.clear()
    assert figures(store) == wanted
    assert not statements


@pytest.mark.slow
def test_a_late_event_counts_at_once_whichever_process_counts_its_hour_again(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = open_store(), open_store()
    ids = fill(ours)
    count(ours)
    rng = random.Random(5)
    for turn in range(2):
        before = figures(ours)
        for number in range(3):
            late = NOON - timedelta(hours=rng.randrange(3, 600), minutes=rng.randrange(60))
            put(other, [job(f"late {turn}-{number}", ended_at=late, cluster="orion", gpu_hours_lost=2.0)])
        with other.unit_of_work() as work:
            work.failures.revise(rng.choice(ids), verdict(side="hardware", cause=f"HW.GPU.{turn + 1}"))
        for counted in (False, True):
            shown = figures(ours)
            assert shown != before, (turn, counted)
            assert shown == from_rows(ours, monkeypatch), (turn, counted)
            assert figures(ours) == shown
            count(other)


@pytest.mark.slow
def test_an_hour_that_an_earlier_release_counted_again_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    count(store)
    for turn in range(2):
        before = figures(store)
        put(store, [job(f"late {turn}", ended_at=NOON - 5 * DAY, cluster="orion", gpu_hours_lost=2.0)])
        with monkeypatch.context() as patched:
            patched.setattr(versions, "write", lambda *_: None)  # an earlier release knows no versions
            patched.setattr(versions, "complete", lambda *_: None)
            assert count(store) == 1
        shown = figures(store)
        assert shown != before
        assert shown == from_rows(store, monkeypatch)
        # The version that an earlier release removed comes back with the next hour that is counted, as another one.
        put(store, [job(f"later {turn}", ended_at=NOON - 6 * DAY, cluster="orion", gpu_hours_lost=2.0)])
        count(store)
        assert figures(store) == from_rows(store, monkeypatch)


def test_a_transaction_that_writes_keeps_nothing(store: Store) -> None:
    fill(store)
    count(store)
    wanted = figures(store)

    class Undone(Exception):
        pass

    def read_and_undo() -> None:
        with store.unit_of_work() as work:
            connection_of(work.rollups).execute(hour_counts.delete())
            connection_of(work.rollups).execute(day_counts.delete().where(day_counts.c.scope != versions.SCOPE))
            assert work.statistics.stats(UNTIL - 28 * DAY, UNTIL).finished < wanted[28, Scope()][0].finished
            raise Undone

    with pytest.raises(Undone):
        read_and_undo()
    assert figures(store) == wanted


def test_every_version_is_greater_than_all_before_it_even_if_those_were_removed(store: Store) -> None:
    found = []
    for turn in range(4):
        with store.unit_of_work() as work:
            connection = connection_of(work.rollups)
            day = NOON - (turn + 900) * DAY
            versions.write(connection, [day])
            found.append(connection.execute(versions.of_days(day, day + HOUR)).one().greatest)
            connection.execute(day_counts.delete().where(day_counts.c.day == day))
    assert found == sorted(set(found))


def test_the_least_recently_used_results_are_dropped() -> None:
    cache = CountCache(most_rows=12)
    read: list[str] = []

    def rows(name: str, number: int) -> list[int]:
        read.append(name)
        return list(range(number))

    for name in ("a", "b", "a", "c", "a", "b"):
        assert cache.get(name, lambda name=name: rows(name, 4)) == (0, 1, 2, 3)  # type: ignore[misc]
    assert read == ["a", "b", "c", "b"]
    assert cache.get("all", lambda: rows("all", 100)) == tuple(range(100))
    assert cache.get("a", lambda: rows("a", 4)) == (0, 1, 2, 3)
    assert read == ["a", "b", "c", "b", "all", "a"]
