"""A session that reads has no method that writes; the repositories of a unit of work extend its readers."""

import inspect
import re
from datetime import UTC, datetime
from functools import cached_property
from types import FunctionType
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine

from service.clock import SystemClock
from service.db.session import ReadSession, Store, UnitOfWork

# What stands in the source of a method that changes rows or locks them.
WRITES = re.compile(
    r"\b(insert|update|delete|with_for_update|upsert)\(|on_conflict|\b(INSERT INTO|UPDATE|DELETE FROM)\b"
    r"|\b(insert_new|reserve_ids)\(|bulk\.(append|write|insert_new|insert_returning|lock)\("
)


@pytest.fixture(scope="module")
def connection() -> Connection:
    engine: Engine = create_engine("sqlite://")
    return engine.connect()


def parts(session: ReadSession) -> dict[str, Any]:
    names = [
        name for kind in type(session).__mro__ for name, part in vars(kind).items() if isinstance(part, cached_property)
    ]
    assert len(names) > 40
    return {name: getattr(session, name) for name in names}


def methods(part: object) -> dict[str, FunctionType]:
    found = inspect.getmembers(type(part), inspect.isfunction)
    return {name: method for name, method in found if name != "__init__"}


def writing(part: object) -> set[str]:
    """Methods that write: those whose source does, and those that call one of these."""
    sources = {name: inspect.getsource(method) for name, method in methods(part).items()}
    found = {name for name, source in sources.items() if WRITES.search(source)}
    while True:
        calling = {
            name
            for name, source in sources.items()
            if name not in found and any(f"self.{other}(" in source for other in found)
        }
        if not calling:
            return found
        found |= calling


def test_a_read_session_has_no_method_that_writes(connection: Connection) -> None:
    session = ReadSession(connection, SystemClock())
    assert {name: writing(part) for name, part in parts(session).items() if writing(part)} == {}


def test_the_writes_of_a_unit_of_work_are_found(connection: Connection) -> None:
    """The rule above sees writes where they are: otherwise it would pass on anything."""
    work = UnitOfWork(connection, SystemClock())
    assert {"add", "revise", "attach"} <= writing(work.failures)
    assert {"turn", "get_locked"} <= writing(work.kill_switch)
    assert {"add", "end", "retract", "of_failures_for_update"} <= writing(work.requests)


def test_a_unit_of_work_reads_what_a_read_session_reads(connection: Connection) -> None:
    session, work = ReadSession(connection, SystemClock()), UnitOfWork(connection, SystemClock())
    for name, reader in parts(session).items():
        assert isinstance(getattr(work, name), type(reader))


def test_a_store_opens_read_sessions_and_units_of_work(store: Store) -> None:
    with store.reading() as reading:
        assert type(reading) is ReadSession
        assert not hasattr(reading.failures, "add")
        assert not hasattr(reading, "pending_logs")
    with store.unit_of_work() as work:
        work.incident_signals.delete_before(datetime(2026, 1, 1, tzinfo=UTC))
