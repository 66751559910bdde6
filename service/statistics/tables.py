"""Tables of statistics."""

from sqlalchemy import BigInteger, Column, Float, Index, String, Table

from service.sql.types import BigId, UtcDateTime, metadata

# Hourly counts (see repository/rollups.py). `kind` names the table that was counted; "" stands for an unknown value.
# Other kinds are sums of these counts over all clusters, queues and teams (see repository/sums.py).
hour_counts = Table(
    "hours",
    metadata,
    Column("hour", UtcDateTime, primary_key=True),
    Column("kind", String(10), primary_key=True),
    Column("cluster", String(200), primary_key=True),
    Column("queue", String(200), primary_key=True),
    Column("team", String(200), primary_key=True),
    Column("status", String(20), primary_key=True),
    Column("side", String(20), primary_key=True),
    Column("cause", String(40), primary_key=True),
    Column("jobs", BigInteger, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
)

# Sums of a day (UTC) of `hours`: of all of it (`scope` "") and of each cluster, queue and team (`scope` says which).
# Those of the scope "sums" are sums of the failures of scope "" (see repository/sums.py).
day_counts = Table(
    "days",
    metadata,
    Column("scope", String(10), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("kind", String(10), primary_key=True),
    Column("day", UtcDateTime, primary_key=True),
    Column("status", String(20), primary_key=True),
    Column("side", String(20), primary_key=True),
    Column("cause", String(40), primary_key=True),
    Column("jobs", BigInteger, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
    Index(None, "day"),
)

stale_hours = Table(
    "hour_notes",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("hour", UtcDateTime, nullable=False),
    Index(None, "hour", "id"),
)
