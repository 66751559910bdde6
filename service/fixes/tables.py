"""Table of fixes."""

from sqlalchemy import Column, Index, String, Table

from service.sql.types import BigId, UtcDateTime, metadata

# The mitigation that fixed a failure according to a person; the latest report.
applied_fixes = Table(
    "mended",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("code", String(4), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Index("ix_mended_at", "at"),
)
