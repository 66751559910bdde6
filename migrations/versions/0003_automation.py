"""Automation: advice as given, requests, lineages, incidents, storms, the kill switch."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = "state IN ('held', 'waiting', 'leased')"
AWAITED = "outcome IS NULL AND state IN ('leased', 'done', 'unknown', 'withdrawn')"


def where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "advices",
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("policy", sa.String(length=100), nullable=False),
        sa.Column("decision", sa.String(length=20), nullable=False),
        sa.Column("mode", sa.String(length=20), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("facts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", "version", name=op.f("pk_advices")),
    )
    op.create_table(
        "requests",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("public_id", sa.String(length=40), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("verdict_version", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("user_name", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("queue", sa.String(length=200), nullable=True),
        sa.Column("gpus", sa.BigInteger(), nullable=True),
        sa.Column("gpu_hours", sa.Float(), nullable=False),
        sa.Column("lineage", sa.String(length=40), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("resource", sa.String(length=300), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("plan", sa.String(length=10), nullable=False),
        sa.Column("policy", sa.String(length=100), nullable=False),
        sa.Column("ask_scheduler", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("fold_keys", sa.Text(), nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=True),
        sa.Column("held_by", sa.String(length=20), nullable=True),
        sa.Column("asked_by", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_token", sa.String(length=100), nullable=True),
        sa.Column("leased_by", sa.String(length=200), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("leased_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("leases", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", sa.String(length=20), nullable=True),
        sa.Column("detail", sa.String(length=1000), nullable=True),
        sa.Column("new_job_id", sa.String(length=200), nullable=True),
        sa.Column("retracted", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("outcome_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome_attempt_id", sa.BigInteger(), nullable=True),
        sa.Column("outcome_failure_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sa.UniqueConstraint("public_id", name=op.f("uq_requests_public_id")),
    )
    op.create_index("ix_requests_awaited", "requests", ["id"], **where(AWAITED))
    op.create_index("ix_requests_cluster_job_id", "requests", ["cluster", "job_id"])
    op.create_index(
        "ix_requests_cluster_leased_at", "requests", ["cluster", "leased_at"], **where("leased_at IS NOT NULL")
    )
    op.create_index(
        "ix_requests_cluster_new_job_id", "requests", ["cluster", "new_job_id"], **where("new_job_id IS NOT NULL")
    )
    op.create_index("ix_requests_failure_id", "requests", ["failure_id"])
    op.create_index("ix_requests_incident_id", "requests", ["incident_id", "id"], **where("incident_id IS NOT NULL"))
    op.create_index("ix_requests_lineage", "requests", ["lineage"])
    op.create_index("ix_requests_open", "requests", ["cluster", "not_before", "id"], **where(OPEN))
    op.create_index("ix_requests_outcome_at", "requests", ["outcome_at"], **where("outcome_at IS NOT NULL"))
    op.create_index("ix_requests_state_id", "requests", ["state", "id"])
    op.create_index("uq_requests_lineage_open", "requests", ["lineage"], unique=True, **where(OPEN))
    op.create_table(
        "lineages",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("lineage", sa.String(length=40), nullable=False),
        sa.Column("root_job_id", sa.String(length=200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "job_id", name=op.f("pk_lineages")),
    )
    op.create_index("ix_lineages_lineage", "lineages", ["lineage"])
    op.create_table(
        "lineage_marks",
        sa.Column("lineage", sa.String(length=40), nullable=False),
        sa.Column("mark", sa.String(length=10), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("lineage", name=op.f("pk_lineage_marks")),
    )
    op.create_table(
        "signals",
        sa.Column("fold_key", sa.String(length=300), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_name", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("fold_key", "failure_id", name=op.f("pk_signals")),
    )
    op.create_index("ix_signals_at", "signals", ["at"])
    op.create_index("ix_signals_fold_key_at", "signals", ["fold_key", "at"])
    op.create_table(
        "incidents",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("fold_key", sa.String(length=300), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("title", sa.String(length=300), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("by_hand", sa.Boolean(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("users", sa.Integer(), nullable=False),
        sa.Column("probes", sa.Integer(), nullable=False),
        sa.Column("probe_id", sa.BigInteger(), nullable=True),
        sa.Column("probe_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_by", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incidents")),
    )
    op.create_index("uq_incidents_fold_key_open", "incidents", ["fold_key"], unique=True, **where("closed_at IS NULL"))
    op.create_table(
        "incident_jobs",
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_name", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("incident_id", "failure_id", name=op.f("pk_incident_jobs")),
    )
    op.create_index("ix_incident_jobs_failure_id", "incident_jobs", ["failure_id"])
    op.create_table(
        "incident_notes",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("what", sa.String(length=20), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident_notes")),
    )
    op.create_index("ix_incident_notes_incident_id", "incident_notes", ["incident_id"])
    op.create_table(
        "storms",
        sa.Column("storm_key", sa.String(length=600), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("held_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("trial_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("trial_id", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.String(length=300), nullable=False),
        sa.PrimaryKeyConstraint("storm_key", name=op.f("pk_storms")),
    )
    op.create_table(
        "demotions",
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("plan", sa.String(length=10), nullable=False),
        sa.Column("policy", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("helped", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "cause", "plan", "policy", name=op.f("pk_demotions")),
    )
    op.create_table(
        "switches",
        sa.Column("name", sa.String(length=20), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switches")),
    )
