"""Inserts rows of `jobs` in bulk, with row ids that are reserved a batch at a time."""

from collections.abc import Sequence

from sqlalchemy import Connection

from service.jobs.tables import JOB_IDS, counters, jobs
from service.sql import bulk


def reserve_ids(connection: Connection, count: int) -> list[int]:
    """Reserve `count` row ids of `jobs`, ascending; no other transaction gets them."""
    if bulk.is_postgres(connection):
        found = connection.exec_driver_sql("SELECT nextval(%s::regclass) FROM generate_series(1, %s)", (JOB_IDS, count))
        return [row[0] for row in found]
    last = connection.exec_driver_sql(
        f"INSERT INTO {counters.name} (name, value) VALUES (?, ?) "  # noqa: S608 - a name of our own table
        "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value RETURNING value",
        (JOB_IDS, count),
    ).scalar_one()
    return list(range(last - count + 1, last + 1))


def insert_new(connection: Connection, columns: Sequence[str], rows: Sequence[bulk.Row]) -> dict[str, int]:
    """Insert those rows whose event_id is not stored yet; their row ids by event_id.

    Rows are inserted in the order of their keys, so that two transactions with the same keys wait for each other in
    turn and never deadlock.
    """
    key = columns.index("event_id")
    row_id = columns.index("id")
    ordered = sorted(rows, key=lambda row: row[key])
    if bulk.is_postgres(connection):
        found = bulk.insert_returning(
            connection, jobs, columns, ordered, conflict="(event_id)", returning="event_id, id"
        )
        return {row[0]: row[1] for row in found}
    # A unit of work holds SQLite's only write lock: nothing can be inserted between these two statements.
    stored = {row[0] for row in bulk.by_keys(connection, "event_id", "jobs", [row[key] for row in ordered])}
    missing = [row for row in ordered if row[key] not in stored]
    bulk.append(connection, jobs, columns, missing)
    return {row[key]: row[row_id] for row in missing}
