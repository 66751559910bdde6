"""The table of leases of periodic tasks, each of which exactly one process performs."""

from sqlalchemy import Column, String, Table

from service.sql.types import UtcDateTime, metadata

# One row a task: who holds it until when, and the last turn that is done.
task_leases = Table(
    "duties",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("holder", String(200)),
    Column("until", UtcDateTime),
    Column("done", String(60)),
)
