"""Counts that stop."""

import pytest
from sqlalchemy import select

from service.db.session import Store
from service.formatting import counted
from service.jobs.tables import jobs
from service.sql import bounded_count
from tests.service.made import job, put


def test_a_count_says_that_there_are_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, [job(f"e{number}", status=("failed", "hung")[number == 0]) for number in range(7)])
    with store._engine.connect() as connection:
        assert bounded_count.count(connection, select(jobs.c.id)) == 7
        monkeypatch.setattr(bounded_count, "COUNT_LIMIT", 5)
        assert bounded_count.count(connection, select(jobs.c.id)) == 6
        found = bounded_count.by_value(connection, jobs.c.status, ("failed", "hung", "timeout"))
    assert found == {"failed": 6, "hung": 1}


def test_more_is_shown_as_more() -> None:
    assert [counted(value) for value in (0, 10_000, 10_001)] == ["0", "10,000", "10,000+"]
