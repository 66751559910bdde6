"""The fleet: node events, maintenance and suspicion."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "node_events",
        sa.Column("id", big_id, nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.String(length=60), nullable=True),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("severity", sa.String(length=10), nullable=False),
        sa.Column("gpu", sa.Integer(), nullable=True),
        sa.Column("resolved", sa.Boolean(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_events")),
        sa.UniqueConstraint("key", name=op.f("uq_node_events_key")),
    )
    op.create_index("ix_node_events_place", "node_events", ["cluster", "node", "at", "id"])
    op.create_index("ix_node_events_window", "node_events", ["cluster", "node", "until"], **where("until IS NOT NULL"))
    op.create_index(op.f("ix_node_events_at"), "node_events", ["at"])
    op.create_table(
        "node_days",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("exposure_h", sa.Float(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("blame", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "node", "day", name=op.f("pk_node_days")),
    )
    op.create_index(op.f("ix_node_days_day"), "node_days", ["day"])
    op.create_table(
        "nodes",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("exposure_h", sa.Float(), nullable=False),
        sa.Column("blame", sa.Float(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("rate_ratio", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=False),
        sa.Column("high", sa.Float(), nullable=False),
        sa.Column("last_failure_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_event_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("repaired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("repaired_by", sa.String(length=200), nullable=True),
        sa.Column("repair_note", sa.String(length=500), nullable=True),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "node", name=op.f("pk_nodes")),
    )
    op.create_index(op.f("ix_nodes_rate_ratio_cluster_node"), "nodes", ["rate_ratio", "cluster", "node"])
    op.create_index(op.f("ix_nodes_cluster_rate_ratio_node"), "nodes", ["cluster", "rate_ratio", "node"])
    op.create_index(op.f("ix_nodes_computed_at"), "nodes", ["computed_at"])
    op.create_table(
        "blames",
        sa.Column("failure_id", big_id, autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", name=op.f("pk_blames")),
    )
    op.create_table(
        "fleet_priors",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("rate", sa.Float(), nullable=False),
        sa.Column("shape", sa.Float(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", name=op.f("pk_fleet_priors")),
    )
    op.create_table(
        "fleet_work",
        sa.Column("id", big_id, nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fleet_work")),
    )
    op.create_table(
        "fleet_rechecks",
        sa.Column("failure_id", big_id, autoincrement=False, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", name=op.f("pk_fleet_rechecks")),
    )
    op.create_index(op.f("ix_fleet_rechecks_due_at"), "fleet_rechecks", ["due_at"])


def downgrade() -> None:
    for table in ("fleet_rechecks", "fleet_work", "fleet_priors", "blames", "nodes", "node_days", "node_events"):
        op.drop_table(table)
