"""INSERT with ON CONFLICT, which each database's dialect has on its own."""

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from service.sql.bulk import is_postgres


def upsert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT into `table` that has `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return postgresql.insert(table) if is_postgres(connection) else sqlite.insert(table)
