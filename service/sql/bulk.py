"""Bulk reads and writes, the fastest way that each database has.

PostgreSQL: COPY for rows that are all new, one JSON parameter for rows that may be stored already (measured for
500 rows of `jobs`: COPY 13 µs a row, JSON 22, unnest 51, multi-row VALUES 94). SQLite: one prepared statement.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import orjson
from sqlalchemy import ColumnElement, Connection, String, Table, and_, any_, literal, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from service.sql.types import utc

T = TypeVar("T")
CHUNK = 500  # SQLite allows 32,766 parameters in a statement; short ones stay in the statement cache


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Consecutive parts of `values`, each of at most `size`; none if there are no values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


Row = tuple[Any, ...]


def is_postgres(connection: Connection) -> bool:
    """Whether the database is PostgreSQL; otherwise it is SQLite."""
    return connection.dialect.name == "postgresql"


def sqlite_time(at: datetime) -> str:
    """An instant as SQLAlchemy stores it in SQLite: text that sorts."""
    return utc(at).replace(tzinfo=None).isoformat(" ", "microseconds")


def row_in(connection: Connection, columns: Sequence[ColumnElement[Any]], rows: Collection[Row]) -> ColumnElement[bool]:
    """The condition that the values of some columns are one of some rows.

    SQLite reads the whole table for a list of rows of several values. It uses an index for lists of single values.
    """
    found = tuple_(*columns).in_(rows)
    if is_postgres(connection):
        return found
    return and_(*(column.in_({row[place] for row in rows}) for place, column in enumerate(columns)), found)


def one_of(connection: Connection, column: ColumnElement[str], values: Collection[str]) -> ColumnElement[bool]:
    """The condition that a text column has one of some values.

    PostgreSQL gets them as one parameter: a list of parameters is written into the statement each time.
    """
    if is_postgres(connection):
        return column == any_(literal(list(values), postgresql.ARRAY(String)))
    return column.in_(values)


def append(connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Insert `rows` (values in the order of `columns`), none of which is stored yet.

    `rows` may be a generator: PostgreSQL stores earlier rows while later ones are computed.
    """
    names = ", ".join(columns)
    if not is_postgres(connection):
        marks = ", ".join("?" * len(columns))
        prepared = [_for_sqlite(row) for row in rows]
        if prepared:
            statement = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own tables
            connection.exec_driver_sql(statement, prepared)
        return
    ahead = iter(rows)
    first = next(ahead, None)
    if first is None:
        return
    driver: Any = connection.connection.dbapi_connection
    command = f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(command) as copy:
        # Binary format: logs are bytes, and each byte would be two hexadecimal digits as text.
        copy.set_types(_copy_types(table, tuple(columns)))
        write = copy.write_row
        write(first)
        for row in ahead:
            write(row)


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert one row; False if a row with its keys is stored already."""
    statement: Any = (postgresql if is_postgres(connection) else sqlite).insert(table)
    counted = statement.values(dict(values)).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return bool(connection.execute(counted).rowcount == 1)


@cache
def _copy_types(table: Table, columns: tuple[str, ...]) -> list[str]:
    """The PostgreSQL types of the columns, without lengths."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # the library's constructor has no types
    return [_PLAIN[table.c[name].type.compile(dialect).partition("(")[0]] for name in columns]


_PLAIN = {
    "BIGINT": "int8",
    "BIGSERIAL": "int8",
    "INTEGER": "int4",
    "VARCHAR": "text",
    "TEXT": "text",
    "BOOLEAN": "bool",
    "FLOAT": "float8",
    "BYTEA": "bytea",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
}


@dataclass(frozen=True, slots=True)
class BulkStatement:
    """A statement for many rows at once, in which `{given}` is a table `given` of these columns.

    `columns` has the PostgreSQL type of each; `{least}` and `{greatest}` are the functions of each database.
    """

    columns: Mapping[str, str]
    statement: str


def write(connection: Connection, what: BulkStatement, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement over `rows` (each with a value for every column)."""
    if not rows:
        return
    if is_postgres(connection):
        typed = ", ".join(f"{name} {kind}" for name, kind in what.columns.items())
        given = f"json_to_recordset(%s::json) AS given ({typed})"
        statement = what.statement.format(given=given, least="least", greatest="greatest")
        connection.exec_driver_sql(statement, (orjson.dumps(list(rows)).decode(),))
        return
    # SQLite's JSON functions: one statement, prepared once for any number of rows.
    picked = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in what.columns)
    given = f"(SELECT {picked} FROM json_each(?)) AS given"  # noqa: S608 - names of our own columns
    statement = what.statement.format(given=given, least="min", greatest="max")
    plain = [
        {name: sqlite_time(value) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows
    ]
    connection.exec_driver_sql(statement, (orjson.dumps(plain).decode(),))


def insert_returning(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row], *, conflict: str, returning: str
) -> list[Row]:
    """Insert rows that may be stored already, on PostgreSQL only: one JSON parameter.

    Args:
        connection: a connection to PostgreSQL.
        table: where the rows go.
        columns: the names of the values of a row.
        rows: the values, in the order of `columns`.
        conflict: the ON CONFLICT target, such as "(event_id)"; "" is any unique key.
        returning: the columns to return.

    Returns:
        `returning` of each row that was not stored yet.
    """
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    statement = _insert_returning_sql(table, tuple(columns), conflict, returning)
    found = connection.exec_driver_sql(statement, (orjson.dumps(objects, default=_bytes_for_json).decode(),))
    return [tuple(row) for row in found]


@cache
def _insert_returning_sql(table: Table, columns: tuple[str, ...], conflict: str, returning: str) -> str:
    names = ", ".join(columns)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # the library's constructor has no types
    typed = ", ".join(f"{name} {table.c[name].type.compile(dialect)}" for name in columns)
    return (
        f"INSERT INTO {table.name} ({names}) SELECT {names} FROM json_to_recordset(%s::json) AS row ({typed}) "  # noqa: S608 - names of our own tables
        f"ON CONFLICT {conflict} DO NOTHING RETURNING {returning}"
    )


def _bytes_for_json(value: Any) -> str:
    """Bytes as PostgreSQL reads them; JSON has every other type of a row."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def by_keys(
    connection: Connection, columns: str, table: str, keys: Collection[Any], *, key: str = "event_id"
) -> list[Row]:
    """`columns` of the rows of `table` whose `key` is one of `keys`."""
    wanted = list(keys)
    if not wanted:
        return []
    select = f"SELECT {columns} FROM {table} WHERE {key}"  # noqa: S608 - names of our own tables
    if is_postgres(connection):
        return [tuple(row) for row in connection.exec_driver_sql(f"{select} = ANY(%s)", (wanted,))]
    found: list[Row] = []
    for chunk in chunks(wanted):
        # Always the same number of placeholders, so that the statement is prepared once.
        padded = (*chunk, *[chunk[0]] * (CHUNK - len(chunk)))
        marks = ", ".join("?" * CHUNK)
        found.extend(tuple(row) for row in connection.exec_driver_sql(f"{select} IN ({marks})", padded))
    return found


def lock(connection: Connection, keys: Iterable[int], *, shared: bool = False) -> None:
    """Hold advisory locks until the transaction ends (PostgreSQL only: SQLite has a single writer)."""
    wanted = sorted(set(keys))
    if wanted and is_postgres(connection):
        statement = (
            "SELECT pg_advisory_xact_lock_shared(key) FROM unnest(%s::bigint[]) AS key"
            if shared
            else "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"
        )
        connection.exec_driver_sql(statement, (wanted,))


def _for_sqlite(row: Row) -> Row:
    return tuple(sqlite_time(value) if isinstance(value, datetime) else value for value in row)


def upsert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT into `table` that has `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return postgresql.insert(table) if is_postgres(connection) else sqlite.insert(table)
