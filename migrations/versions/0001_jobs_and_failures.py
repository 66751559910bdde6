"""The first tables: attempts, failures with verdicts and logs, dead letters, outbox, tokens."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Already compressed: PostgreSQL should not try to compress them again.
COMPRESSED = (("logs", "streams"), ("logs", "event"), ("verdicts", "body"), ("outbox", "payload"))


def where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("place", sa.String(length=500), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("errors", sa.LargeBinary(), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("resent_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
    )
    op.create_index("ix_dead_letters_at", "dead_letters", ["at"])
    op.create_index("ix_dead_letters_open", "dead_letters", ["id"], **where("resent_at IS NULL"))
    op.create_index("uq_dead_letters_sha256_place", "dead_letters", ["sha256", "place"], unique=True)

    op.create_table(
        "failure_nodes",
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", "node", name=op.f("pk_failure_nodes")),
    )
    op.create_index("ix_failure_nodes_node_ended_at_failure_id", "failure_nodes", ["node", "ended_at", "failure_id"])

    op.create_table(
        "failures",
        sa.Column("id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("user_name", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("queue", sa.String(length=200), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(length=10), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("category", sa.String(length=40), nullable=True),
        sa.Column("symptom", sa.String(length=40), nullable=True),
        sa.Column("platform_symptom", sa.String(length=40), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("abstained", sa.Boolean(), nullable=False),
        sa.Column("retry_outlook", sa.String(length=20), nullable=True),
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("decision", sa.String(length=20), nullable=False),
        sa.Column("resubmit", sa.Boolean(), nullable=False),
        sa.Column("headline", sa.String(length=300), nullable=False),
        sa.Column("suspect_node", sa.String(length=200), nullable=True),
        sa.Column("suspect_rank", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failures")),
    )
    op.create_index("ix_failures_abstained", "failures", ["ended_at", "id"], **where("abstained"))
    op.create_index(
        "ix_failures_category_ended_at_id", "failures", ["category", "ended_at", "id"], **where("category IS NOT NULL")
    )
    op.create_index("ix_failures_cause_ended_at_id", "failures", ["cause", "ended_at", "id"])
    op.create_index("ix_failures_cluster_ended_at_id", "failures", ["cluster", "ended_at", "id"])
    op.create_index(
        "ix_failures_ended_at_id",
        "failures",
        ["ended_at", "id", "counted", "status", "side", "cause", "abstained", "gpu_hours_lost"],
    )
    op.create_index("ix_failures_fingerprint_ended_at_id", "failures", ["fingerprint", "ended_at", "id"])
    op.create_index("ix_failures_gpu_hours_lost_id", "failures", ["gpu_hours_lost", "id"])
    op.create_index(
        "ix_failures_queue_ended_at_id", "failures", ["queue", "ended_at", "id"], **where("queue IS NOT NULL")
    )
    op.create_index("ix_failures_side_ended_at_id", "failures", ["side", "ended_at", "id"])
    op.create_index("ix_failures_status_ended_at_id", "failures", ["status", "ended_at", "id"])
    op.create_index(
        "ix_failures_symptom_ended_at_id", "failures", ["symptom", "ended_at", "id"], **where("symptom IS NOT NULL")
    )
    op.create_index("ix_failures_team_ended_at_id", "failures", ["team", "ended_at", "id"], **where("team IS NOT NULL"))
    op.create_index(
        "ix_failures_user_name_ended_at_id",
        "failures",
        ["user_name", "ended_at", "id"],
        **where("user_name IS NOT NULL"),
    )

    op.create_table(
        "jobs",
        sa.Column("id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("event_id", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("conflicts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=200), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("pod", sa.String(length=300), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=True),
        sa.Column("user_name", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("queue", sa.String(length=200), nullable=True),
        sa.Column("gpus", sa.BigInteger(), nullable=True),
        sa.Column("gpu_type", sa.String(length=200), nullable=True),
        sa.Column("nodes", sa.Text(), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resubmit_of", sa.String(length=200), nullable=True),
        sa.Column("restart_count", sa.BigInteger(), nullable=True),
        sa.Column("clock_suspect", sa.Boolean(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("event_id", name=op.f("uq_jobs_event_id")),
    )
    op.create_index("ix_jobs_cluster_job_id", "jobs", ["cluster", "job_id"])
    op.create_index("ix_jobs_conflicting", "jobs", ["id"], **where("conflicts > 0"))
    op.create_index("ix_jobs_ended_at", "jobs", ["ended_at", "counted", "status", "gpu_hours_lost"])

    op.create_table(
        "logs",
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.LargeBinary(), nullable=False),
        sa.Column("streams", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("failure_id", "attempt_id", name=op.f("pk_logs")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("type", sa.String(length=60), nullable=False),
        sa.Column("key", sa.String(length=500), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("leased_by", sa.String(length=200), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index("ix_outbox_waiting", "outbox", ["available_at", "id"], **where("done_at IS NULL"))

    op.create_table(
        "retired_events",
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_retired_events")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_tokens_sha256")),
    )
    op.create_index("uq_tokens_name_unrevoked", "tokens", ["name"], unique=True, **where("revoked_at IS NULL"))

    op.create_table(
        "pending_logs",
        sa.Column("attempt_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("refs", sa.LargeBinary(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["failure_id"], ["failures.id"], name=op.f("fk_pending_logs_failure_id_failures"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_pending_logs")),
    )
    op.create_index("ix_pending_logs_failure_id", "pending_logs", ["failure_id"])
    op.create_index("ix_pending_logs_next_at", "pending_logs", ["next_at"])

    op.create_table(
        "verdicts",
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.String(length=10), nullable=False),
        sa.Column("model", sa.String(length=100), nullable=False),
        sa.Column("rules", sa.String(length=100), nullable=False),
        sa.Column("policy", sa.String(length=100), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["failure_id"], ["failures.id"], name=op.f("fk_verdicts_failure_id_failures"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("failure_id", "version", name=op.f("pk_verdicts")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE job_ids")
        for table, column in COMPRESSED:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
