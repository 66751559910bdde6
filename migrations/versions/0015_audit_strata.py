"""Strata of audits, and the machine's answer that an audit judges."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("audits", sa.Column("stratum", sa.String(length=20), nullable=True))
    op.add_column("audits", sa.Column("population", sa.Integer(), nullable=True))
    op.add_column("audits", sa.Column("machine_side", sa.String(length=20), nullable=True))
    op.add_column("audits", sa.Column("machine_cause", sa.String(length=40), nullable=True))


def downgrade() -> None:
    op.drop_column("audits", "machine_cause")
    op.drop_column("audits", "machine_side")
    op.drop_column("audits", "population")
    op.drop_column("audits", "stratum")
