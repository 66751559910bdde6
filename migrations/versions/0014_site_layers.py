"""Site layers, their promotions, labels that wait for a second person, and withdrawn feedback."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "site_layers",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("decision", sa.String(length=10), nullable=False),
        sa.Column("gate", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_layers")),
    )
    op.create_index("ix_site_layers_at", "site_layers", ["at"])
    op.create_table(
        "model_promotions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("layer", sa.String(length=40), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_promotions")),
    )
    op.add_column("labels", sa.Column("held", sa.String(length=200), nullable=True))
    op.add_column("feedback", sa.Column("held", sa.String(length=200), nullable=True))
    op.add_column("feedback", sa.Column("withdrawn_by", sa.String(length=200), nullable=True))


def downgrade() -> None:
    op.drop_column("feedback", "withdrawn_by")
    op.drop_column("feedback", "held")
    op.drop_column("labels", "held")
    op.drop_table("model_promotions")
    op.drop_table("site_layers")
