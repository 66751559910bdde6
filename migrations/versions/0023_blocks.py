"""Blocks of nodes: those that one fast interconnect joins."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("block", sa.String(length=100), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "block")
