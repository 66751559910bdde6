"""The table of recurring duties that exactly one process performs."""

from sqlalchemy import Column, String, Table

from service.sql.metadata import metadata
from service.sql.types import UtcDateTime

# Who does a recurring duty until when, and up to what it is done; one row a duty.
duties = Table(
    "duties",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("holder", String(200)),
    Column("until", UtcDateTime),
    Column("done", String(60)),
)
