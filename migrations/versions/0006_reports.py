"""Published reports, and leases of periodic tasks."""

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
    op.create_table(
        "hours",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("queue", sa.String(length=200), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint(
            "hour", "kind", "cluster", "queue", "team", "status", "side", "cause", name=op.f("pk_hours")
        ),
    )
    op.create_table(
        "hour_notes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hour_notes")),
    )
    op.create_index(op.f("ix_hour_notes_hour_id"), "hour_notes", ["hour", "id"])
    # Stored rows are counted in the background.
    hour = (
        "date_trunc('hour', ended_at, 'UTC')"
        if op.get_bind().dialect.name == "postgresql"
        else "strftime('%Y-%m-%d %H:00:00.000000', ended_at)"
    )
    op.execute(f"INSERT INTO hour_notes (hour) SELECT DISTINCT {hour} FROM jobs")  # noqa: S608 - one of two texts above


def downgrade() -> None:
    op.drop_table("hour_notes")
    op.drop_table("hours")
    op.drop_table("digests")
    op.drop_table("duties")
    op.drop_table("reports")
