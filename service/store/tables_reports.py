"""Tables. Published reports, duties that exactly one process does, digests of messages, counted hours and days."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, String, Table

from service.store.tables import metadata
from service.store.types import BigId, UtcDateTime

# A published report is frozen: a later version is a row of its own.
reports = Table(
    "reports",
    metadata,
    Column("week", String(8), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("published_at", UtcDateTime, nullable=False),
    Column("publisher", String(200), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# Who does a recurring duty until when, and up to what it is done; one row a duty.
duties = Table(
    "duties",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("holder", String(200)),
    Column("until", UtcDateTime),
    Column("done", String(60)),
)

# When an endpoint was last told of something, by a digest of what belongs together.
digests = Table(
    "digests",
    metadata,
    Column("endpoint", String(100), primary_key=True),
    Column("key_hash", LargeBinary, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

# Counted rows of an hour (service.store.rollups); `kind` says of which table. "" stands for what is not known.
hours = Table(
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
days = Table(
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

hour_notes = Table(
    "hour_notes",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("hour", UtcDateTime, nullable=False),
    Index(None, "hour", "id"),
)
