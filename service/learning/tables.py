"""Tables of site layers."""

from sqlalchemy import Column, Index, LargeBinary, String, Table

from service.sql.metadata import metadata
from service.sql.types import BigId, UtcDateTime

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
