"""Every table. Identifiers are the store's own: topic, partition and offset are never one.

An attempt's row id is also the id of the failure it opens, so that one number names the whole chain. Text under an
index is cut to fit (see `service.store.types.short`): PostgreSQL refuses index entries over 2,704 bytes.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    String,
    Table,
    Text,
    text,
)

from service.store.types import BigId, UtcDateTime

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

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
    # Behind the time, what the counts of a period ask: they read the index alone.
    Index("ix_jobs_ended_at", "ended_at", "counted", "status", "gpu_hours_lost"),
    Index(
        "ix_jobs_conflicting",
        "id",
        postgresql_where=text("conflicts > 0"),
        sqlite_where=text("conflicts > 0"),
    ),
)

failures = Table(
    "failures",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=False),
    Column("cluster", String(200), nullable=False),
    Column("status", String(20), nullable=False),
    Column("user_name", String(200)),
    Column("team", String(200)),
    Column("queue", String(200)),
    Column("ended_at", UtcDateTime, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
    Column("counted", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source", String(10), nullable=False),
    Column("side", String(20), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("category", String(40)),
    Column("symptom", String(40)),
    Column("platform_symptom", String(40)),
    Column("confidence", Float, nullable=False),
    Column("abstained", Boolean, nullable=False),
    Column("retry_outlook", String(20)),
    Column("fingerprint", String(200), nullable=False),
    Column("decision", String(20), nullable=False),
    Column("resubmit", Boolean, nullable=False),
    Column("headline", String(300), nullable=False),
    Column("suspect_node", String(200)),
    Column("suspect_rank", BigInteger),
    # One index a filter of the failures page, each in the page's own order, so that a page reads its 50 rows alone.
    # Behind the list's own order, what the counts of a period ask.
    Index(
        "ix_failures_ended_at_id",
        *("ended_at", "id", "counted", "status", "side", "cause", "abstained", "gpu_hours_lost"),
    ),
    Index(None, "gpu_hours_lost", "id"),
    *(Index(None, name, "ended_at", "id") for name in ("cluster", "status", "side", "cause", "fingerprint")),
    *(
        Index(
            None,
            name,
            "ended_at",
            "id",
            postgresql_where=text(f"{name} IS NOT NULL"),
            sqlite_where=text(f"{name} IS NOT NULL"),
        )
        for name in ("user_name", "team", "queue", "category", "symptom")
    ),
    Index(
        "ix_failures_abstained",
        "ended_at",
        "id",
        postgresql_where=text("abstained"),
        sqlite_where=text("abstained"),
    ),
)

# `failure_nodes` and `logs` have no foreign key: a batch's one transaction writes them with their failure, retention
# removes them with it, and PostgreSQL's check of every row costs a tenth of a batch (measured).
failure_nodes = Table(
    "failure_nodes",
    metadata,
    Column("failure_id", BigInteger, primary_key=True),
    Column("node", String(200), primary_key=True),
    Column("ended_at", UtcDateTime, nullable=False),
    Index(None, "node", "ended_at", "failure_id"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("failure_id", BigInteger, ForeignKey("failures.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("source", String(10), nullable=False),
    Column("model", String(100), nullable=False),
    Column("rules", String(100), nullable=False),
    Column("policy", String(100), nullable=False),
    Column("body", LargeBinary),
    Index(None, "at"),  # what is to be sealed next
)

# Apart from the narrow rows: most of a failure's bytes are here, and lists never touch them.
logs = Table(
    "logs",
    metadata,
    Column("failure_id", BigInteger, primary_key=True),
    Column("attempt_id", BigInteger, primary_key=True),
    Column("event", LargeBinary, nullable=False),
    Column("streams", LargeBinary),
)

pending_logs = Table(
    "pending_logs",
    metadata,
    Column("attempt_id", BigId, primary_key=True, autoincrement=False),
    Column("failure_id", BigInteger, ForeignKey("failures.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("refs", LargeBinary, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("next_at", UtcDateTime, nullable=False, index=True),
    Column("until", UtcDateTime, nullable=False),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("place", String(500), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("errors", LargeBinary, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("resent_at", UtcDateTime),
    Index("uq_dead_letters_sha256_place", "sha256", "place", unique=True),
    Index(
        "ix_dead_letters_open",
        "id",
        postgresql_where=text("resent_at IS NULL"),
        sqlite_where=text("resent_at IS NULL"),
    ),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("type", String(60), nullable=False),
    Column("key", String(500), nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("available_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("leased_by", String(200)),
    Column("leased_until", UtcDateTime),
    Column("done_at", UtcDateTime),
    Index(
        "ix_outbox_waiting",
        "available_at",
        "id",
        postgresql_where=text("done_at IS NULL"),
        sqlite_where=text("done_at IS NULL"),
    ),
)

# A message of the outbox for one endpoint; a lease moves `available_at` to its own end.
deliveries = Table(
    "deliveries",
    metadata,
    Column("message_id", BigInteger, ForeignKey("outbox.id", ondelete="CASCADE"), primary_key=True),
    Column("endpoint", String(100), primary_key=True),
    Column("state", String(10), nullable=False),
    Column("available_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("leased_by", String(200)),
    Column("detail", String(300)),
    Column("done_at", UtcDateTime),
    Index(
        "ix_deliveries_waiting",
        "endpoint",
        "available_at",
        "message_id",
        postgresql_where=text("state = 'waiting'"),
        sqlite_where=text("state = 'waiting'"),
    ),
    Index(
        "ix_deliveries_given_up",
        "message_id",
        "endpoint",
        postgresql_where=text("state = 'given_up'"),
        sqlite_where=text("state = 'given_up'"),
    ),
)

# The circuit of each endpoint, shared by all who send. `target` is a digest of its address: a new one starts afresh.
endpoints = Table(
    "endpoints",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("target", String(64), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("paused_until", UtcDateTime),
    Column("disabled_at", UtcDateTime),
    Column("detail", String(300)),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("scopes", String(100), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Index(
        "uq_tokens_name_unrevoked",
        "name",
        unique=True,
        postgresql_where=text("revoked_at IS NULL"),
        sqlite_where=text("revoked_at IS NULL"),
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
