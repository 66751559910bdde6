"""The lines of the last successful run of each job, as hashes."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "good_runs",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("user_name", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lines", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "user_name", "name", name=op.f("pk_good_runs")),
    )
    op.create_index(op.f("ix_good_runs_ended_at"), "good_runs", ["ended_at"])


def downgrade() -> None:
    op.drop_table("good_runs")
