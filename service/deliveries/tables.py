"""Tables of deliveries."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

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

# The circuit breaker of each endpoint, shared by all processes. `target` is a digest of its address; a new address
# resets it.
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

# The last message of a digest to an endpoint, by the digest's key.
digests = Table(
    "digests",
    metadata,
    Column("endpoint", String(100), primary_key=True),
    Column("key_hash", LargeBinary, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)
