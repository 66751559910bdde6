"""Earlier labels of a group, which can be withdrawn too.

They are in the row of the latest label: the release before writes that row without them, and goes on to work.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("group_labels", sa.Column("earlier", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("group_labels", "earlier")
