"""Tables of failures."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

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
    # One index for each filter of the failures page, in the order of the page: a page reads only its own 50 rows.
    # After the columns of the list's order: the columns that the counts of a period read.
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

# `failure_nodes`, `logs` and `log_bodies` have no foreign key: a batch's one transaction writes them with their
# failure, retention removes them with it, and PostgreSQL's check of every row costs a tenth of a batch (measured).
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
    Index(None, "at"),  # finds the verdicts to seal next
)

# The attempts of a failure, with their events. `streams` has their logs only if they were stored before there was
# `log_bodies`; then `counters` has a row of the name LOGS_IN_ROWS until retention has removed the last of them.
LOGS_IN_ROWS = "logs_in_rows"

logs = Table(
    "logs",
    metadata,
    Column("failure_id", BigInteger, primary_key=True),
    Column("attempt_id", BigInteger, primary_key=True),
    Column("event", LargeBinary, nullable=False),
    Column("streams", LargeBinary),
)

# The logs of attempts, apart from all else: they are most bytes of a failure and the first that are removed. PostgreSQL
# partitions them by the month in which the attempt ended (service/db/log_months.py), so that retention drops a month as
# a whole. `ended_at` never changes, so that an attempt has one row, as with a key without it.
log_bodies = Table(
    "log_bodies",
    metadata,
    Column("failure_id", BigInteger, primary_key=True),
    Column("attempt_id", BigInteger, primary_key=True),
    Column("ended_at", UtcDateTime, primary_key=True),
    Column("streams", LargeBinary, nullable=False),
    Index(None, "ended_at"),
    postgresql_partition_by="RANGE (ended_at)",
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

# A digest of every record written in a period, chained like the audit log.
verdict_seals = Table(
    "seals",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("until", UtcDateTime, nullable=False),
    Column("records", Integer, nullable=False),
    Column("entries", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

# Counts of verdicts by model and rules, updated when verdicts are sealed; retention does not reduce them.
verdict_models = Table(
    "models",
    metadata,
    Column("model", String(100), primary_key=True),
    Column("rules", String(100), primary_key=True),
    Column("verdicts", BigInteger, nullable=False),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
)
