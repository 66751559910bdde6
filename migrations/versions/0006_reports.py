"""Published reports, and duties that exactly one process does."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("week", sa.String(length=8), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("publisher", sa.String(length=200), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("week", "version", name=op.f("pk_reports")),
    )
    op.create_table(
        "duties",
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done", sa.String(length=60), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_duties")),
    )
    op.create_table(
        "digests",
        sa.Column("endpoint", sa.String(length=100), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "key_hash", name=op.f("pk_digests")),
    )


def downgrade() -> None:
    op.drop_table("digests")
    op.drop_table("duties")
    op.drop_table("reports")
