"""Tables of requests."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, String, Table, Text, text

from service.sql.types import BigId, UtcDateTime, metadata

# The advice on each version of a verdict, and the facts known at that time.
advice_history = Table(
    "advices",
    metadata,
    Column("failure_id", BigInteger, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("policy", String(100), nullable=False),
    Column("decision", String(20), nullable=False),
    Column("mode", String(20), nullable=False),
    Column("step", BigInteger),
    Column("facts", LargeBinary, nullable=False),
)

OPEN = "state IN ('held', 'waiting', 'leased')"

AWAITED = "outcome IS NULL AND state IN ('leased', 'done', 'unknown', 'withdrawn')"

requests = Table(
    "requests",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("public_id", String(40), nullable=False, unique=True),
    Column("failure_id", BigInteger, nullable=False, index=True),
    Column("attempt_id", BigInteger, nullable=False),
    Column("verdict_version", Integer, nullable=False),
    Column("cluster", String(200), nullable=False),
    Column("job_id", String(200), nullable=False),
    Column("attempt", BigInteger),
    Column("user_name", String(200)),
    Column("team", String(200)),
    Column("queue", String(200)),
    Column("gpus", BigInteger),
    Column("gpu_hours", Float, nullable=False),
    Column("lineage", String(40), nullable=False),
    Column("side", String(20), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("fingerprint", String(200), nullable=False),
    Column("resource", String(300), nullable=False),
    Column("step", BigInteger),
    Column("started_at", UtcDateTime),
    Column("state", String(10), nullable=False),
    Column("origin", String(10), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("plan", String(10), nullable=False),
    Column("policy", String(100), nullable=False),
    Column("ask_scheduler", Boolean, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("fold_keys", Text, nullable=False),
    Column("incident_id", BigInteger),
    Column("held_by", String(20)),
    Column("asked_by", String(200)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("not_before", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("lease_token", String(100)),
    Column("leased_by", String(200)),
    Column("leased_until", UtcDateTime),
    Column("leased_at", UtcDateTime),
    Column("leases", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("result", String(20)),
    Column("detail", String(1000)),
    Column("new_job_id", String(200)),
    Column("retracted", Boolean, nullable=False),
    Column("outcome", String(20)),
    Column("outcome_at", UtcDateTime),
    Column("outcome_attempt_id", BigInteger),
    Column("outcome_failure_id", BigInteger),
    # One open request per lineage, regardless of who requests it.
    Index("uq_requests_lineage_open", "lineage", unique=True, postgresql_where=text(OPEN), sqlite_where=text(OPEN)),
    Index("ix_requests_open", "cluster", "not_before", "id", postgresql_where=text(OPEN), sqlite_where=text(OPEN)),
    Index("ix_requests_awaited", "id", postgresql_where=text(AWAITED), sqlite_where=text(AWAITED)),
    Index(None, "state", "created_at"),
    Index(None, "cluster", "job_id"),
    Index(None, "lineage"),
    Index(None, "created_at"),
    Index(
        "ix_requests_cluster_leased_at",
        "cluster",
        "leased_at",
        postgresql_where=text("leased_at IS NOT NULL"),
        sqlite_where=text("leased_at IS NOT NULL"),
    ),
    Index(
        "ix_requests_cluster_new_job_id",
        "cluster",
        "new_job_id",
        postgresql_where=text("new_job_id IS NOT NULL"),
        sqlite_where=text("new_job_id IS NOT NULL"),
    ),
    Index(
        "ix_requests_incident_id",
        "incident_id",
        "id",
        postgresql_where=text("incident_id IS NOT NULL"),
        sqlite_where=text("incident_id IS NOT NULL"),
    ),
    Index(
        "ix_requests_outcome_at",
        # The indexed time and the columns that the tallies count: they are read from the index alone.
        *("outcome_at", "origin", "cluster", "cause", "plan", "policy", "outcome"),
        postgresql_where=text("outcome_at IS NOT NULL"),
        sqlite_where=text("outcome_at IS NOT NULL"),
    ),
)

# Only resubmitted jobs are stored here; any other job is the root of its own lineage.
lineages = Table(
    "lineages",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("job_id", String(200), primary_key=True),
    Column("lineage", String(40), nullable=False, index=True),
    Column("root_job_id", String(200), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

# A person's mark on a lineage: never resubmit, or hold until the person releases it.
lineage_marks = Table(
    "lineage_marks",
    metadata,
    Column("lineage", String(40), primary_key=True),
    Column("mark", String(10), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("by", String(200), nullable=False),
    Column("comment", Text),
)

# Keys (cause, cluster, resource) that the retry-storm limit holds.
storms = Table(
    "storms",
    metadata,
    Column("storm_key", String(600), primary_key=True),
    Column("cluster", String(200), nullable=False),
    Column("held_since", UtcDateTime, nullable=False),
    Column("trial_at", UtcDateTime),
    Column("trial_id", BigInteger),
    Column("reason", String(300), nullable=False),
)

demotions = Table(
    "demotions",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("cause", String(40), primary_key=True),
    Column("plan", String(10), primary_key=True),
    Column("policy", String(100), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("helped", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("floor", Float, nullable=False),
)

# One row, created when automation is stopped for the first time.
kill_switches = Table(
    "switches",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("stopped", Boolean, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("by", String(200), nullable=False),
    Column("reason", String(500)),
)
