"""Connections to both databases, and translation of their errors."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.errors import ConfigurationError, DamagedData, FaultlineError, FieldError, InvalidInput, Unavailable

VARIABLE = "FAULTLINE_DATABASE_URL"
EXPECTED = "sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME"
READING = "faultline_reading"

BUSY_TIMEOUT_S = 15
# A server that hangs must raise an error, or the consumer could never pause: a connection times out after 5 s, a
# statement after a minute, a row lock after half a minute, a lost peer after 30 s.
# Rows are appended in the order of time, so that an index on time or id reads neighbouring pages, which the default of
# random_page_cost does not expect: with 4, sums over a month of 15 million jobs read all of them. Compiling a statement
# (jit) takes longer than most of ours. One statement uses one core, so that long ones leave the others to short ones.
_POSTGRES_OPTIONS = (
    "-c timezone=UTC -c statement_timeout=60000 -c lock_timeout=30000 -c idle_in_transaction_session_timeout=120000 "
    "-c random_page_cost=1.1 -c jit=off -c max_parallel_workers_per_gather=0"
)
_POSTGRES_CONNECT = {"connect_timeout": 5, "tcp_user_timeout": 30_000, "application_name": "faultline"}

# Page caches of all connections of a process together: each may have its own copy of a page. Reading a page that a
# connection does not keep costs little, as the system keeps it: 64 MiB in all took as much processor time as 256 MiB
# (measured), and many readers at once would fill all of them.
_SQLITE_CACHE_KIB = 64 * 1024
_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
    }
)
LONGEST_LABEL = 63  # of the name of a host (RFC 1035); a longer one is no error of the driver but a crash
_READ_ONLY_TRANSACTION = "25006"  # the server has become a replica
_UNDEFINED_TABLE, _UNDEFINED_COLUMN = "42P01", "42703"


def parse_url(url: str) -> URL:
    """The validated URL with its driver.

    Raises:
        ConfigurationError: not one of the two databases, or its driver is not installed.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _bad_url("not a URL") from None
    if parsed.drivername == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.database.startswith("file:"):
            raise _bad_url("sqlite without a path: several threads share one database")
        return parsed
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        if any(len(label) > LONGEST_LABEL for label in re.split("[.,]", parsed.host or "")):
            raise _bad_url("a host with a longer name than hosts have")
        return parsed.set(drivername="postgresql+psycopg")
    raise _bad_url(parsed.drivername)


def _bad_url(got: str) -> ConfigurationError:
    return ConfigurationError(f"{VARIABLE}: expected {EXPECTED}", (FieldError(VARIABLE, EXPECTED, got),))


def connect(url: str, *, pool_size: int) -> Engine:
    """An engine that has not connected yet.

    Raises:
        ConfigurationError: see `parse_url`.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, pool_size)
    return _postgres(parsed, pool_size)


def _postgres(url: URL, pool_size: int) -> Engine:
    given = url.query.get("options", "")
    options = f"{_POSTGRES_OPTIONS} {given if isinstance(given, str) else ' '.join(given)}".strip()
    try:
        return create_engine(
            url.difference_update_query(["options"]),
            connect_args={**_POSTGRES_CONNECT, "options": options},
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=20,
            pool_pre_ping=True,
            pool_recycle=3600,
            hide_parameters=True,
        )
    except (ImportError, NoSuchModuleError):
        raise ConfigurationError(
            f"{VARIABLE} names PostgreSQL, whose driver is not installed: pip install 'faultline[postgres]'"
        ) from None


def _sqlite(url: URL, pool_size: int) -> Engine:
    # All stay open: a new connection would read the schema again and have an empty cache.
    connections = 2 * pool_size
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False, "isolation_level": None},
        pool_size=connections,
        max_overflow=0,
        pool_timeout=20,
        hide_parameters=True,
    )

    @event.listens_for(engine, "do_connect")
    def _refuse_to_create(_dialect: Any, _record: Any, arguments: list[Any], _keywords: Any) -> None:
        # SQLite would create an empty file of any name; only `create_file` may, readable by its owner only.
        if not Path(arguments[0]).exists():
            raise ConfigurationError(f"{VARIABLE}: no database at {arguments[0]}: run `faultline db upgrade`")

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: commits survive a power failure. Kafka offsets are committed in reliance on it.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{_SQLITE_CACHE_KIB // connections}")
        connection.execute("PRAGMA temp_store = MEMORY")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = bool(connection.get_execution_options().get(READING))
        connection.exec_driver_sql(f"PRAGMA query_only = {int(reading)}")
        # IMMEDIATE: a writer waits for the lock here; later SQLite would fail instead of waiting.
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def create_file(engine: Engine) -> None:
    """Create SQLite's file if it does not exist, readable by its owner only; does nothing for PostgreSQL.

    Raises:
        ConfigurationError: the folder is missing or may not be written.
    """
    path = engine.url.database
    if engine.dialect.name != "sqlite" or path is None:
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{VARIABLE}: {path} cannot be created: {error.strerror}") from None


@contextmanager
def errors_translated(engine: Engine) -> Iterator[None]:
    """Translate database errors of the block that an operator or a retry can resolve into errors of the service.

    Raises:
        Unavailable: no answer, a lock that stays, a full disk: trying again later may help.
        ConfigurationError: the schema is missing or outdated.
        DamagedData: a stored value can't be read.
        InvalidInput: PostgreSQL cannot hold a value.
    """
    driver_error = engine.dialect.loaded_dbapi.Error
    try:
        yield
    except FaultlineError:
        raise
    except PoolTimeout:
        raise Unavailable("every database connection is in use") from None
    except DBAPIError as error:
        known = _translated(engine, error.orig, lost=error.connection_invalidated)
        if known is None:
            raise
        raise known from error
    except driver_error as error:
        known = _translated(engine, error, lost=False)
        if known is None:
            raise
        raise known from error


def _translated(engine: Engine, error: BaseException | None, *, lost: bool) -> FaultlineError | None:
    """The service's error for a driver error; None for programming errors, which are not translated."""
    message = " ".join(str(error).split())[:300]
    if engine.dialect.name == "sqlite":
        return _translated_sqlite(error, message)
    state = getattr(error, "sqlstate", None)
    if state in {_UNDEFINED_TABLE, _UNDEFINED_COLUMN}:
        return _outdated_schema(message)
    dbapi = engine.dialect.loaded_dbapi
    if message.startswith(("timestamp too", "date too")):  # a stored one that Python has no value for
        return DamagedData(f"a stored time is damaged: {message}")
    if isinstance(error, dbapi.DataError):  # a text with a null character, a number or a time out of range
        return InvalidInput(f"expected values that the database can hold: {message}")
    if lost or state == _READ_ONLY_TRANSACTION or isinstance(error, (dbapi.OperationalError, dbapi.InterfaceError)):
        return Unavailable(f"the database does not answer: {message}{_certificate_hint(message)}")
    return None


def _certificate_hint(message: str) -> str:
    """Where to look if the client refuses the server's certificate, whose fault libpq does not name."""
    if "certificate verify failed" not in message:
        return ""
    return f"; it is expired or not signed by an authority in sslrootcert ({VARIABLE})"


def _translated_sqlite(error: BaseException | None, message: str) -> FaultlineError | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and (code & 0xFF) in _SQLITE_UNAVAILABLE:
        return Unavailable(f"the database does not answer: {message}")
    if message.startswith(("Could not decode to UTF-8", "integer overflow", "malformed JSON")):
        return DamagedData(f"a stored value is damaged: {message.partition(' with text')[0]}")
    if code == sqlite3.SQLITE_CORRUPT:
        return DamagedData(f"{VARIABLE}: the file is damaged ({message}): restore a backup")
    if code == sqlite3.SQLITE_NOTADB:
        return ConfigurationError(f"{VARIABLE}: the file is not a SQLite database")
    if message.startswith(("no such table", "no such column")):
        return _outdated_schema(message)
    return None


def _outdated_schema(message: str) -> ConfigurationError:
    return ConfigurationError(f"the database schema is outdated ({message}): run `faultline db upgrade`")
