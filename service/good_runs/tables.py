"""Table of good runs."""

from sqlalchemy import Column, LargeBinary, String, Table

from service.sql.types import UtcDateTime, metadata

# One row for each job name of a user. `lines`: at most 4,096 hashes of 8 bytes (classifiers.last_good_run).
good_runs = Table(
    "good_runs",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("user_name", String(200), primary_key=True),
    Column("name", String(300), primary_key=True),
    Column("job_id", String(200), nullable=False),
    Column("ended_at", UtcDateTime, nullable=False, index=True),
    Column("lines", LargeBinary, nullable=False),
)
