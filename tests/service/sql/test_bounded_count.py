"""Bounded counts."""

import pytest
from sqlalchemy import select

from service.db.session import Store
from service.formatting import counted
from service.jobs.tables import jobs
from service.sql import paging
from tests.service.databases import engine_of
from tests.service.sample_rows import job, put


def test_a_count_stops_one_beyond_its_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, [job(f"e{number}", status=("failed", "hung")[number == 0]) for number in range(7)])
    with engine_of(store).connect() as connection:
        assert connection.scalar(paging.bounded(select(jobs.c.id))) == 7
        monkeypatch.setattr(paging, "COUNT_LIMIT", 5)
        assert connection.scalar(paging.bounded(select(jobs.c.id))) == 6
        found = paging.read_counts(connection, paging.bounded_counts(jobs.c.status, ("failed", "hung", "timeout")))
    assert found == {"failed": 6, "hung": 1}


def test_a_bounded_count_is_shown_with_a_plus() -> None:
    assert [counted(value) for value in (0, 10_000, 10_001)] == ["0", "10,000", "10,000+"]
