"""Attempts to log in, counted for all processes. An older version counts in memory and leaves the table alone."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "login_attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("place", sa.String(length=64), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_attempts")),
    )
    op.create_index(op.f("ix_login_attempts_until"), "login_attempts", ["until"])
    op.create_index(op.f("ix_login_attempts_key_until"), "login_attempts", ["key", "until"])


def downgrade() -> None:
    op.drop_table("login_attempts")
