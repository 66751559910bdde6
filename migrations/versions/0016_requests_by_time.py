"""Requests by the time at which they were made, for the funnel of automation."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_requests_created_at"), "requests", ["created_at"])


def downgrade() -> None:
    op.drop_index("ix_requests_created_at", "requests")
