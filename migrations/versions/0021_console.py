"""Labels of groups that can be withdrawn, places of nodes, and published reports of clusters and teams."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "group_labels",
        sa.Column(
            "group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("side_before", sa.String(length=20), nullable=False),
        sa.Column("cause_before", sa.String(length=40), nullable=False),
        sa.Column("abstained_before", sa.Boolean(), nullable=False),
        sa.Column("labelled_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("judgements", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", name=op.f("pk_group_labels")),
    )
    op.create_table(
        "scoped_reports",
        sa.Column("week", sa.String(length=8), nullable=False),
        sa.Column("cluster", sa.String(length=200), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("publisher", sa.String(length=200), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("week", "cluster", "team", "version", name=op.f("pk_scoped_reports")),
    )
    op.add_column("nodes", sa.Column("rack", sa.String(length=100), nullable=True))
    op.add_column("nodes", sa.Column("switch", sa.String(length=100), nullable=True))
    op.add_column("nodes", sa.Column("zone", sa.String(length=100), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "zone")
    op.drop_column("nodes", "switch")
    op.drop_column("nodes", "rack")
    op.drop_table("scoped_reports")
    op.drop_table("group_labels")
