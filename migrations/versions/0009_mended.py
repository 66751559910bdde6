"""The fix of a failure, as recorded by people."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mended",
        sa.Column(
            "failure_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("code", sa.String(length=4), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", name=op.f("pk_mended")),
    )
    op.create_index(op.f("ix_mended_at"), "mended", ["at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_mended_at"), "mended")
    op.drop_table("mended")
