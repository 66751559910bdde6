"""Groups of failures, feedback and full-text search."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("week", sa.String(length=10), nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("feedback_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("week", "failure_id", name=op.f("pk_audits")),
    )
    op.create_table(
        "feedback",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("said_side", sa.String(length=20), nullable=False),
        sa.Column("said_cause", sa.String(length=40), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=True),
        sa.Column("cause", sa.String(length=40), nullable=True),
        sa.Column("category", sa.String(length=40), nullable=True),
        sa.Column("symptom", sa.String(length=40), nullable=True),
        sa.Column("retry", sa.String(length=20), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("model_shown", sa.Boolean(), nullable=False),
        sa.Column("evidence", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feedback")),
    )
    op.create_index("ix_feedback_at", "feedback", ["at"])
    op.create_index(op.f("ix_feedback_failure_id_id"), "feedback", ["failure_id", "id"])
    op.create_index("ix_feedback_kind", "feedback", ["kind", "at"])
    op.create_table(
        "group_deltas",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("failure_id", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("sign", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_group_deltas")),
    )
    op.create_table(
        "group_facets",
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "kind", "name", name=op.f("pk_group_facets")),
    )
    op.create_index("ix_group_facets_kind_name", "group_facets", ["kind", "name", "fingerprint"])
    op.create_table(
        "group_hours",
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "hour", name=op.f("pk_group_hours")),
    )
    op.create_table(
        "group_splits",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("field", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_group_splits")),
    )
    op.create_index(op.f("ix_group_splits_fingerprint"), "group_splits", ["fingerprint"])
    op.create_table(
        "groups",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("title", sa.String(length=300), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("abstained", sa.Boolean(), nullable=False),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("users", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.Column("recent", sa.BigInteger(), nullable=True),
        sa.Column("expected", sa.Float(), nullable=True),
        sa.Column("chance", sa.Float(), nullable=True),
        sa.Column("assignee", sa.String(length=200), nullable=True),
        sa.Column("ticket", sa.String(length=500), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("muted_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("muted_failures", sa.BigInteger(), nullable=True),
        sa.Column("muted_users", sa.BigInteger(), nullable=True),
        sa.Column("merged_into", sa.BigInteger(), nullable=True),
        sa.Column("labelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("review_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
    )
    op.create_index("ix_groups_cost", "groups", ["gpu_hours_lost", "id"])
    op.create_index("ix_groups_last_at", "groups", ["last_at", "id"])
    op.create_index("ix_groups_novel", "groups", ["gpu_hours_lost", "id"], **where("abstained AND merged_into IS NULL"))
    op.create_index("ix_groups_review_at", "groups", ["review_at"])
    op.create_index("ix_groups_state", "groups", ["state", "last_at", "id"])
    op.create_index("ix_groups_state_cost", "groups", ["state", "gpu_hours_lost", "id"])
    op.create_table(
        "labels",
        sa.Column("failure_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=True),
        sa.Column("cause", sa.String(length=40), nullable=True),
        sa.Column("category", sa.String(length=40), nullable=True),
        sa.Column("symptom", sa.String(length=40), nullable=True),
        sa.Column("retry", sa.String(length=20), nullable=True),
        sa.Column("people", sa.Integer(), nullable=False),
        sa.Column("disputed", sa.Boolean(), nullable=False),
        sa.Column("contested", sa.Boolean(), nullable=False),
        sa.Column("golden", sa.Boolean(), nullable=False),
        sa.Column("waiting", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("failure_id", name=op.f("pk_labels")),
    )
    op.create_index("ix_labels_at", "labels", ["at", "failure_id"])
    op.create_index("ix_labels_queue", "labels", ["at", "failure_id"], **where("waiting"))
    op.create_table(
        "saved_views",
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("page", sa.String(length=40), nullable=False),
        sa.Column("query", sa.String(length=2000), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("who", "name", name=op.f("pk_saved_views")),
    )
    op.create_table(
        "group_fingerprints",
        sa.Column("fingerprint", sa.String(length=200), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("own_group", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours_lost", sa.Float(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_group_fingerprints_group_id_groups"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_group_fingerprints")),
    )
    op.create_index(op.f("ix_group_fingerprints_group_id"), "group_fingerprints", ["group_id"])
    op.create_table(
        "group_mutes",
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("muted_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("muted_failures", sa.BigInteger(), nullable=True),
        sa.Column("muted_users", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_group_mutes_group_id_groups"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("who", "group_id", name=op.f("pk_group_mutes")),
    )
    op.create_table(
        "group_notes",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_group_notes_group_id_groups"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_group_notes")),
    )
    op.create_index(op.f("ix_group_notes_group_id_id"), "group_notes", ["group_id", "id"])

    _words()
    # Every stored failure is counted once, as a new one.
    op.execute(
        "INSERT INTO group_deltas (failure_id, fingerprint, sign) SELECT id, fingerprint, 1 FROM failures ORDER BY id"
    )


def _words() -> None:
    """What each database searches words with; of failures that are there already, those of the headline."""
    postgres = op.get_bind().dialect.name == "postgresql"
    if postgres:
        op.execute("CREATE TABLE evidence_words (failure_id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)")
        op.execute(
            "INSERT INTO evidence_words SELECT id, to_tsvector('simple', "
            "regexp_replace(lower(headline), '[^[:alnum:]]+', ' ', 'g')) FROM failures"
        )
        op.execute("CREATE INDEX ix_evidence_words_words ON evidence_words USING gin (words)")
    else:
        op.execute("CREATE VIRTUAL TABLE evidence_words USING fts5(words, tokenize='ascii', detail=none, columnsize=0)")
        op.execute("INSERT INTO evidence_words (rowid, words) SELECT id, lower(headline) FROM failures")


def downgrade() -> None:
    op.execute("DROP TABLE evidence_words")
    op.drop_table("group_notes")
    op.drop_table("group_mutes")
    op.drop_table("group_fingerprints")
    op.drop_table("saved_views")
    op.drop_table("labels")
    op.drop_table("groups")
    op.drop_table("group_splits")
    op.drop_table("group_hours")
    op.drop_table("group_facets")
    op.drop_table("group_deltas")
    op.drop_table("feedback")
    op.drop_table("audits")
