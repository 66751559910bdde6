"""An index of repairs of nodes by time, for the repairs of a period."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_nodes_repaired_at"), "nodes", ["repaired_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_nodes_repaired_at"), table_name="nodes")
