"""Tables of incidents."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text, text

from service.sql.types import BigId, UtcDateTime, metadata

# One row for each shared resource of a recent failure; incidents are detected from these. Short-lived.
incident_signals = Table(
    "signals",
    metadata,
    Column("fold_key", String(300), primary_key=True),
    Column("failure_id", BigInteger, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("user_name", String(200)),
    Index(None, "fold_key", "at"),
    Index(None, "at"),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("fold_key", String(300), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("value", String(200), nullable=False),
    Column("cluster", String(200), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("title", String(300), nullable=False),
    Column("state", String(10), nullable=False),
    Column("by_hand", Boolean, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("jobs", Integer, nullable=False),
    Column("users", Integer, nullable=False),
    Column("probes", Integer, nullable=False),
    Column("probe_id", BigInteger),
    Column("probe_at", UtcDateTime),
    Column("closed_at", UtcDateTime),
    Column("closed_by", String(200)),
    # A resource has at most one open incident, however many processes detect it at the same time.
    Index(
        "uq_incidents_fold_key_open",
        "fold_key",
        unique=True,
        postgresql_where=text("closed_at IS NULL"),
        sqlite_where=text("closed_at IS NULL"),
    ),
)

incident_jobs = Table(
    "incident_jobs",
    metadata,
    Column("incident_id", BigInteger, primary_key=True),
    Column("failure_id", BigInteger, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("user_name", String(200)),
    Index(None, "failure_id"),
)

incident_notes = Table(
    "incident_notes",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("incident_id", BigInteger, nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("by", String(200), nullable=False),
    Column("what", String(20), nullable=False),
    Column("text", Text, nullable=False),
)
