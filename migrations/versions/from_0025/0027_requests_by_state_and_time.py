"""An index of resubmission requests by state and time instead of state and id, for the requests of a period."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_requests_state_created_at"), "requests", ["state", "created_at"])
    op.drop_index(op.f("ix_requests_state_id"), table_name="requests")


def downgrade() -> None:
    op.create_index(op.f("ix_requests_state_id"), "requests", ["state", "id"])
    op.drop_index(op.f("ix_requests_state_created_at"), table_name="requests")
