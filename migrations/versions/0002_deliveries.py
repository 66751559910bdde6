"""Deliveries: one message to one endpoint; and the state of each endpoint."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "deliveries",
        sa.Column("message_id", sa.BigInteger(), nullable=False),
        sa.Column("endpoint", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("leased_by", sa.String(length=200), nullable=True),
        sa.Column("detail", sa.String(length=300), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["message_id"], ["outbox.id"], name=op.f("fk_deliveries_message_id_outbox"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", "endpoint", name=op.f("pk_deliveries")),
    )
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["endpoint", "available_at", "message_id"],
        **where("state = 'waiting'"),
    )
    op.create_index("ix_deliveries_given_up", "deliveries", ["message_id", "endpoint"], **where("state = 'given_up'"))
    op.create_table(
        "endpoints",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("paused_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("detail", sa.String(length=300), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_endpoints")),
    )
