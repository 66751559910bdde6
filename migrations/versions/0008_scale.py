"""Sums of days, and indexes that bound the cost of pages."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ENDED: dict[str, Any] = {
    "postgresql_where": sa.text("outcome_at IS NOT NULL"),
    "sqlite_where": sa.text("outcome_at IS NOT NULL"),
}


def upgrade() -> None:
    op.create_table(
        "days",
        sa.Column("scope", sa.String(length=10), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("day", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "name", "kind", "day", "status", "side", "cause", name=op.f("pk_days")),
    )
    op.create_index(op.f("ix_days_day"), "days", ["day"])
    # Counted hours are summed here; other hours update their day when they are counted.
    day = (
        "date_trunc('day', hour, 'UTC')"
        if op.get_bind().dialect.name == "postgresql"
        else "substr(hour, 1, 10) || ' 00:00:00.000000'"
    )
    for scope, name in (("", "''"), ("cluster", "cluster"), ("queue", "queue"), ("team", "team")):
        op.execute(
            "INSERT INTO days (scope, name, kind, day, status, side, cause, jobs, gpu_hours_lost) "  # noqa: S608 - texts of ours
            f"SELECT '{scope}', {name}, kind, {day}, status, side, cause, sum(jobs), sum(gpu_hours_lost) "
            "FROM hours GROUP BY 1, 2, 3, 4, 5, 6, 7"
        )

    op.drop_index("ix_groups_state", "groups")
    op.create_index("ix_groups_state", "groups", ["state", "last_at", "id", "merged_into"])
    op.drop_index("ix_requests_outcome_at", "requests")
    op.create_index(
        "ix_requests_outcome_at",
        "requests",
        ["outcome_at", "origin", "cluster", "cause", "plan", "policy", "outcome"],
        **ENDED,
    )


def downgrade() -> None:
    op.drop_index("ix_requests_outcome_at", "requests")
    op.create_index("ix_requests_outcome_at", "requests", ["outcome_at"], **ENDED)
    op.drop_index("ix_groups_state", "groups")
    op.create_index("ix_groups_state", "groups", ["state", "last_at", "id"])
    op.drop_table("days")
