"""Tables of jobs."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

# The row ids of `jobs` are reserved a batch at a time: from this sequence on PostgreSQL, from `counters` on SQLite.
JOB_IDS = "job_ids"

Sequence(JOB_IDS, metadata=metadata)

jobs = Table(
    "jobs",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=False),
    Column("event_id", String(200), nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False),
    Column("conflicts", Integer, nullable=False, server_default=text("0")),
    Column("cluster", String(200), nullable=False),
    Column("job_id", String(200), nullable=False),
    Column("attempt", BigInteger),
    Column("pod", String(300)),
    Column("status", String(20), nullable=False),
    Column("name", String(300)),
    Column("user_name", String(200)),
    Column("team", String(200)),
    Column("queue", String(200)),
    Column("gpus", BigInteger),
    Column("gpu_type", String(200)),
    Column("nodes", Text),
    Column("submitted_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("resubmit_of", String(200)),
    Column("restart_count", BigInteger),
    Column("clock_suspect", Boolean, nullable=False),
    Column("counted", Boolean, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
    Column("failure_id", BigInteger),
    Index(None, "cluster", "job_id"),
    # After the time: the columns that the counts of a period read, so that they only read the index.
    Index("ix_jobs_ended_at", "ended_at", "counted", "status", "gpu_hours_lost"),
    Index(
        "ix_jobs_conflicting",
        "id",
        postgresql_where=text("conflicts > 0"),
        sqlite_where=text("conflicts > 0"),
    ),
)

# The keys of rows that retention removed: 16 bytes of BLAKE2b each, so that a late replay is still a duplicate.
retired_events = Table(
    "retired_events",
    metadata,
    Column("key_hash", LargeBinary, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
