"""Tables of nodes."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

# `key` is 16 bytes of BLAKE2b over the event's id, or over its content if it has none.
node_events = Table(
    "node_events",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("cluster", String(200), nullable=False),
    Column("node", String(200), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("until", UtcDateTime),
    Column("received_at", UtcDateTime, nullable=False),
    Column("source", String(60)),
    Column("kind", String(40), nullable=False),
    Column("severity", String(10), nullable=False),
    Column("gpu", Integer),
    Column("resolved", Boolean, nullable=False),
    Column("text", Text, nullable=False),
    Index("ix_node_events_place", "cluster", "node", "at", "id"),
    Index(
        "ix_node_events_window",
        "cluster",
        "node",
        "until",
        postgresql_where=text("until IS NOT NULL"),
        sqlite_where=text("until IS NOT NULL"),
    ),
    Index(None, "at"),
)

# One row per node and day, from which the suspicion is computed. `blame` are weighted failures.
node_days = Table(
    "node_days",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("node", String(200), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("exposure_h", Float, nullable=False),
    Column("jobs", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("blame", Float, nullable=False),
    Index(None, "day"),
)

# One row per node: the decayed sums of its days and the suspicion computed from them.
nodes = Table(
    "nodes",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("node", String(200), primary_key=True),
    Column("exposure_h", Float, nullable=False),
    Column("blame", Float, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("jobs", Integer, nullable=False),
    Column("rate_ratio", Float, nullable=False),
    Column("low", Float, nullable=False),
    Column("high", Float, nullable=False),
    Column("last_failure_at", UtcDateTime),
    Column("last_event_at", UtcDateTime),
    Column("repaired_at", UtcDateTime),
    Column("repaired_by", String(200)),
    Column("repair_note", String(500)),
    Column("computed_at", UtcDateTime, nullable=False),
    Column("rack", String(100)),
    Column("switch", String(100)),
    Column("zone", String(100)),
    Column("block", String(100)),
    Index(None, "rate_ratio", "cluster", "node"),
    Index(None, "cluster", "rate_ratio", "node"),
    Index(None, "computed_at"),
    Index(None, "repaired_at"),
)

# What a failure added to the days of its nodes, so that a revised verdict can subtract it.
failure_weights = Table(
    "blames",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

# The failure rate of a cluster's nodes and its variation: the prior of each node's rate.
failure_rate_priors = Table(
    "fleet_priors",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("rate", Float, nullable=False),
    Column("shape", Float, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("computed_at", UtcDateTime, nullable=False),
)

# Written by the transaction that causes the work, done in the background: ids of attempts or failures, or windows.
node_work = Table(
    "fleet_work",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("kind", String(10), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# Failures to be reassessed at a later time.
node_rechecks = Table(
    "fleet_rechecks",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("due_at", UtcDateTime, nullable=False, index=True),
)
