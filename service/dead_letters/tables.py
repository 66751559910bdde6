"""Tables of dead letters."""

from sqlalchemy import (
    Column,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

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
