"""Tables of reports."""

from sqlalchemy import Boolean, Column, Index, Integer, LargeBinary, String, Table

from service.sql.types import BigId, UtcDateTime, metadata

# A published report never changes: a later version is another row.
reports = Table(
    "reports",
    metadata,
    Column("week", String(8), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("published_at", UtcDateTime, nullable=False),
    Column("publisher", String(200), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# The same for reports of a cluster, of a team, or of a team on a cluster; `cluster` or `team` is empty for all.
scoped_reports = Table(
    "scoped_reports",
    metadata,
    Column("week", String(8), primary_key=True),
    Column("cluster", String(200), primary_key=True),
    Column("team", String(200), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("published_at", UtcDateTime, nullable=False),
    Column("publisher", String(200), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# Who receives the report every week. `recipient` is the user name in the endpoint's address, empty for a channel.
# `cluster` and `team` are empty for all. `last_week`: the newest week that was sent, or was over before it began.
report_subscriptions = Table(
    "report_subscriptions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("token", String(40), nullable=False, unique=True),
    Column("endpoint", String(100), nullable=False),
    Column("recipient", String(200), nullable=False),
    Column("mail", Boolean, nullable=False),
    Column("cluster", String(200), nullable=False),
    Column("team", String(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("last_week", String(8), nullable=False),
    Index("uq_report_subscriptions_receiver", "endpoint", "recipient", "cluster", "team", unique=True),
)
