"""Tables of reports."""

from sqlalchemy import Column, Integer, LargeBinary, String, Table

from service.sql.metadata import metadata
from service.sql.types import UtcDateTime

# A published report never changes: a later version is another row.
reports = Table(
    "reports",
    metadata,
    Column("week", String(8), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("published_at", UtcDateTime, nullable=False),
    Column("publisher", String(200), nullable=False),
    Column("body", LargeBinary, nullable=False),
)
