"""Answers of the second reader, one for each kind of failure."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "second_readings",
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("model", sa.String(length=200)),
        sa.Column("side", sa.String(length=20)),
        sa.Column("cause", sa.String(length=40)),
        sa.Column("confidence", sa.Float()),
        sa.Column("reason", sa.String(length=500)),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_second_readings")),
    )
    op.create_index(op.f("ix_second_readings_asked_at"), "second_readings", ["asked_at"])


def downgrade() -> None:
    op.drop_table("second_readings")
