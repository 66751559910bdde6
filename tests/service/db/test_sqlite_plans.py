"""Indexes that SQLite's planner would not choose by itself, with the statistics of a large database."""

from datetime import timedelta

import pytest

from service.db.session import Store
from service.groups.records import GroupFilter, GroupSort
from service.groups.repository import listing
from service.resubmissions.records import RequestState
from service.statistics.records import Scope
from tests.service.databases import engine_of
from tests.service.db.test_plans import plan, statements
from tests.service.sample_rows import NOON, job, put

# What ANALYZE, limited as by PRAGMA optimize, says of a year with a million failures.
LARGE = (
    ("hours", "sqlite_autoindex_hours_1", "2386848 251 56 21 3 2 2 1 1"),
    ("requests", "ix_requests_state_created_at", "699504 1001 1"),
    ("requests", "ix_requests_cluster_job_id", "699504 1001 1"),
)


@pytest.fixture
def large(store: Store) -> Store:
    """A database with the statistics of a large one."""
    if store.dialect == "postgresql":
        pytest.skip("PostgreSQL's planner finds these plans by itself")
    with engine_of(store).connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        for row in LARGE:
            connection.exec_driver_sql("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", row)
        connection.commit()
    engine_of(store).dispose()  # statistics are read with the schema
    return store


@pytest.mark.parametrize("sort", ["-last_at", "-gpu_hours_lost"])
@pytest.mark.parametrize("state", [None, "ongoing"])
def test_a_list_of_groups_is_not_sorted_again_so_that_it_stops_when_its_page_is_full(
    large: Store, monkeypatch: pytest.MonkeyPatch, sort: GroupSort, state: str | None
) -> None:
    put(large, [job("e1", user="ana")], fingerprint="v1:a")
    with large.unit_of_work() as work:
        while work.groups.fold() is not None:
            pass
    monkeypatch.setattr(listing, "FEW", 0)  # every name is one of many groups
    with large.reading() as reading, statements(large) as seen:
        reading.groups.page(GroupFilter(user="ana", state=state), sort=sort)
    [of_page] = [one for one in seen if "searched.title" in one[0] and "count(*)" not in one[0]]
    with large.reading() as reading:
        text = plan(reading, *of_page)
    assert "ix_groups" in text
    assert "TEMP B-TREE" not in text, text


def test_requests_whose_job_has_not_ended_are_read_from_their_own_index(large: Store) -> None:
    with large.unit_of_work() as work, statements(large) as seen:
        assert not work.outcomes.any_awaited()
        assert work.outcomes.without_end_since(NOON) == []
        assert work.outcomes.tallies() == []
    of_awaited = [one for one in seen if "outcome IS NULL" in one[0]]
    assert len(of_awaited) == 3
    with large.reading() as reading:
        for statement, parameters in of_awaited:
            assert "ix_requests_awaited" in plan(reading, statement, parameters)


@pytest.mark.parametrize("scope", [Scope(cluster="c1"), Scope(queue="q1"), Scope(team="t1")])
@pytest.mark.parametrize("days", [7, 28])
def test_the_counts_of_a_scope_read_the_hours_of_the_period_alone(large: Store, scope: Scope, days: int) -> None:
    with large.reading() as reading, statements(large) as seen:
        reading.statistics.stats(NOON - timedelta(days=days), NOON, scope)
        reading.statistics.series(NOON - timedelta(days=days), NOON, scope)
    of_hours = [one for one in seen if "FROM hours" in one[0]]
    assert of_hours
    with large.reading() as reading:
        for statement, parameters in of_hours:
            text = plan(reading, statement, parameters)
            assert "hour>?" in text, text
            assert "ANY(hour)" not in text, text


@pytest.mark.parametrize("state", [None, "done", "waiting"])
@pytest.mark.parametrize("cluster", [None, "c1"])
def test_the_requests_of_a_period_are_not_sorted_so_that_reading_stops_when_the_page_is_full(
    large: Store, state: RequestState | None, cluster: str | None
) -> None:
    with large.reading() as reading, statements(large) as seen:
        reading.requests.page(state=state, cluster=cluster, since=NOON - timedelta(days=28), until=NOON)
    with large.reading() as reading:
        text = plan(reading, *seen[-1])
    assert "created_at" in text
    assert "TEMP B-TREE" not in text, text
