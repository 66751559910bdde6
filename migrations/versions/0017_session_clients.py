"""Address and browser of the client of a session, for the list of a person's sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("address", sa.String(length=100)))
    op.add_column("sessions", sa.Column("agent", sa.String(length=300)))


def downgrade() -> None:
    op.drop_column("sessions", "agent")
    op.drop_column("sessions", "address")
