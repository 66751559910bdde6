"""Tokens bound to clusters and teams, with an expiry; idle sessions; identities of providers; one-time passwords."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# A token of an earlier release has null in the new columns: it is bound to nothing and does not expire.
_COLUMNS = {
    "tokens": (("clusters", sa.Text()), ("teams", sa.Text()), ("expires_at", sa.DateTime(timezone=True))),
    "sessions": (("used_at", sa.DateTime(timezone=True)),),
    "accounts": (
        ("issuer", sa.String(length=500)),
        ("external_id", sa.String(length=255)),
        ("totp_secret", sa.String(length=100)),
        ("totp_step", sa.BigInteger()),
    ),
}


def upgrade() -> None:
    for table, columns in _COLUMNS.items():
        for name, kind in columns:
            op.add_column(table, sa.Column(name, kind, nullable=True))
    op.create_index("uq_accounts_identity", "accounts", ["issuer", "external_id"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_accounts_identity", "accounts")
    for table, columns in _COLUMNS.items():
        for name, _ in columns:
            op.drop_column(table, name)
