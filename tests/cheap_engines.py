"""Engines of a test process: what one compiles serves all, and nothing is synced to disk.

A statement is compiled once per engine, and most tests open an engine of their own: without this, a quarter of their
processor time goes into the same statements again and again. Processes that tests start have the engines of operation.
"""

from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.util import LRUCache

from service.db import engine as operation

KEPT = 4_000


class SharedStatements(LRUCache[Any, Any]):
    """Compiled statements by the name of their dialect, in place of the dialect of one engine."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_shared(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_shared(key), value)


def _shared(key: Any) -> Any:
    dialect, *rest = key
    return (dialect.name, *rest)


_statements = SharedStatements(KEPT)


def connect(url: str, *, pool_size: int) -> Engine:
    """`service.db.engine.connect`, cheaper."""
    engine = operation.connect(url, pool_size=pool_size)
    engine._compiled_cache = _statements
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def _unsynced(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA synchronous = OFF")

    return engine
