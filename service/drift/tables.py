"""Tables of drift monitoring."""

from sqlalchemy import Column, Float, Integer, LargeBinary, String, Table

from service.sql.types import BigId, UtcDateTime, metadata

# What was measured when a failure was classified; written with the failure, without a foreign key as `logs`.
input_measures = Table(
    "input_measures",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("unknown_share", Float, nullable=False),
    Column("lines", Integer, nullable=False),
    Column("unmatched", Integer, nullable=False),
    Column("versions", String(400)),  # software with its version, separated by semicolons
)

# Comparisons of a recent period with one before.
drift_reports = Table(
    "drift_reports",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
