"""Measures of the input of each failure, and reports on drift."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "input_measures",
        sa.Column(
            "failure_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("unknown_share", sa.Float(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("unmatched", sa.Integer(), nullable=False),
        sa.Column("versions", sa.String(length=400), nullable=True),
        sa.PrimaryKeyConstraint("failure_id", name=op.f("pk_input_measures")),
    )
    op.create_table(
        "drift_reports",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drift_reports")),
    )


def downgrade() -> None:
    op.drop_table("drift_reports")
    op.drop_table("input_measures")
