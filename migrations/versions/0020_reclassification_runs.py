"""Runs that classify stored failures again on several machines, and their ranges."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reclassification_runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reclassification_runs")),
    )
    op.create_index(op.f("ix_reclassification_runs_name"), "reclassification_runs", ["name"])
    op.create_table(
        "reclassified_ranges",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("read", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("people", sa.Integer(), nullable=False),
        sa.Column("unreadable", sa.Integer(), nullable=False),
        sa.Column("moves", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "first", name=op.f("pk_reclassified_ranges")),
    )


def downgrade() -> None:
    op.drop_table("reclassified_ranges")
    op.drop_index(op.f("ix_reclassification_runs_name"), "reclassification_runs")
    op.drop_table("reclassification_runs")
