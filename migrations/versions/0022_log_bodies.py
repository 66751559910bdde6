"""Logs in a table of their own, which PostgreSQL partitions by month.

The column `logs.streams` stays: logs that were stored before are read there, and retention removes them there. So no
row is rewritten, and the upgrade of a large database takes no longer than that of a small one.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

MONTHS_BACK, MONTHS_AHEAD = 4, 3


def upgrade() -> None:
    op.create_table(
        "log_bodies",
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("streams", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", "attempt_id", "ended_at", name=op.f("pk_log_bodies")),
        postgresql_partition_by="RANGE (ended_at)",
    )
    op.create_index(op.f("ix_log_bodies_ended_at"), "log_bodies", ["ended_at"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE log_bodies ALTER COLUMN streams SET STORAGE EXTERNAL")
        op.execute("CREATE TABLE log_bodies_default PARTITION OF log_bodies DEFAULT")
        now = datetime.now(UTC)
        this = now.year * 12 + now.month - 1
        for month in range(this - MONTHS_BACK, this + MONTHS_AHEAD + 1):
            op.execute(
                f"CREATE TABLE log_bodies_{month // 12:04d}_{month % 12 + 1:02d} PARTITION OF log_bodies "
                f"FOR VALUES FROM ('{_first(month)}') TO ('{_first(month + 1)}')"
            )
    op.execute("INSERT INTO counters (name, value) SELECT 'logs_in_rows', 1 WHERE EXISTS (SELECT 1 FROM logs)")


def _first(month: int) -> str:
    """The beginning of a month, counted from year 0."""
    return f"{month // 12:04d}-{month % 12 + 1:02d}-01 00:00:00+00"


def downgrade() -> None:
    body = "SELECT b.streams FROM log_bodies b WHERE b.failure_id = logs.failure_id AND b.attempt_id = logs.attempt_id"
    op.execute(f"UPDATE logs SET streams = ({body}) WHERE streams IS NULL AND EXISTS ({body})")  # noqa: S608 - fixed text
    op.execute("DELETE FROM counters WHERE name = 'logs_in_rows'")
    op.drop_table("log_bodies")
