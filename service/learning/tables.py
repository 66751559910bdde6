"""Tables of site layers, and of runs that classify stored failures again on several machines."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, String, Table

from service.sql.types import BigId, UtcDateTime, metadata

# Layers as they were fitted, with the result of the gate.
site_layers = Table(
    "site_layers",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("decision", String(10), nullable=False),
    Column("gate", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("ix_site_layers_at", "at"),
)

# The layer in use is that of the last row; an empty name is the packaged model alone.
model_promotions = Table(
    "model_promotions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("layer", String(40), nullable=False),
    Column("reason", String(500), nullable=False),
)

# Runs on several machines: which failures, by the ids between which they lie.
reclassification_runs = Table(
    "reclassification_runs",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", String(40), nullable=False),  # a digest of model and filters
    Column("started_at", UtcDateTime, nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("done_at", UtcDateTime),
    Index(None, "name"),
)

# Ranges of ids whose new versions are stored: each is written in the transaction of its versions, so exactly once.
reclassified_ranges = Table(
    "reclassified_ranges",
    metadata,
    Column("run_id", BigInteger, primary_key=True),
    Column("first", BigInteger, primary_key=True),
    Column("read", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("people", Integer, nullable=False),
    Column("unreadable", Integer, nullable=False),
    Column("moves", LargeBinary, nullable=False),
)
