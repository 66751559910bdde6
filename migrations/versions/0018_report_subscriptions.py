"""Subscriptions of the weekly report."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "report_subscriptions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("token", sa.String(length=40), nullable=False),
        sa.Column("endpoint", sa.String(length=100), nullable=False),
        sa.Column("recipient", sa.String(length=200), nullable=False),
        sa.Column("mail", sa.Boolean(), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("last_week", sa.String(length=8), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report_subscriptions")),
        sa.UniqueConstraint("token", name=op.f("uq_report_subscriptions_token")),
    )
    op.create_index(
        "uq_report_subscriptions_receiver",
        "report_subscriptions",
        ["endpoint", "recipient", "cluster", "team"],
        unique=True,
    )


def downgrade() -> None:
    op.drop_table("report_subscriptions")
