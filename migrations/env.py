"""Alembic environment: runs the migrations on the given connection, or on the database of the settings.

`faultline db upgrade` passes a connection. Alembic's own command (`alembic -c migrations/alembic.ini revision
--autogenerate -m "..."`) has none, and reads FAULTLINE_DATABASE_URL.
"""

from collections.abc import Sequence

from alembic import context
from alembic.operations.ops import MigrationScript
from sqlalchemy import Connection

from service.db.all_tables import metadata
from service.db.engine import connect
from service.db.schema import is_of_one_database
from service.settings import read


def _set_number(_context: object, _revision: object, scripts: Sequence[MigrationScript]) -> None:
    """Give a new revision the next number."""
    newest = context.script.get_current_head()
    for script in scripts:
        script.rev_id = f"{int(newest or 0) + 1:04}"


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        # SQLite can roll back schema changes too, since the driver leaves BEGIN to the engine (service.db.engine).
        transactional_ddl=True,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        compare_server_default=True,
        include_name=lambda name, kind, _parent: not is_of_one_database(name, kind),
        process_revision_directives=_set_number,
    )
    with context.begin_transaction():
        context.run_migrations()


handed_in: Connection | None = context.config.attributes.get("connection")
if handed_in is not None:
    _run(handed_in)
else:
    with connect(read().database_url.get_secret_value(), pool_size=1).begin() as own:
        _run(own)
