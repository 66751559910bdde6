"""Counts of verdicts by model, updated when verdicts are sealed."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("model", sa.String(length=100), nullable=False),
        sa.Column("rules", sa.String(length=100), nullable=False),
        sa.Column("verdicts", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("model", "rules", name=op.f("pk_models")),
    )
    # Sealed verdicts are counted here; others are counted when they are sealed.
    op.execute(
        "INSERT INTO models (model, rules, verdicts, first_at, last_at) "
        "SELECT model, rules, count(*), min(at), max(at) FROM verdicts "
        'WHERE at <= (SELECT max("until") FROM seals) GROUP BY model, rules'
    )


def downgrade() -> None:
    op.drop_table("models")
