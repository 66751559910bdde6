"""Tables of people."""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

# `clusters` and `teams` are JSON lists of names; null: the token is bound to none.
tokens = Table(
    "tokens",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("scopes", String(100), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("clusters", Text),
    Column("teams", Text),
    Column("expires_at", UtcDateTime),
    Index(
        "uq_tokens_name_unrevoked",
        "name",
        unique=True,
        postgresql_where=text("revoked_at IS NULL"),
        sqlite_where=text("revoked_at IS NULL"),
    ),
)

# `password` is an Argon2 hash, null for externally authenticated people (`source` oidc or proxy). `issuer` and
# `external_id` are the claims `iss` and `sub` of an identity provider. `totp_secret` is the key of one-time passwords
# (RFC 6238) in base 32, `totp_step` the last accepted time step, so that no code is accepted twice.
accounts = Table(
    "accounts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("source", String(10), nullable=False),
    Column("role", String(20), nullable=False),
    Column("password", String(300)),
    Column("users", Text, nullable=False),
    Column("teams", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("disabled_at", UtcDateTime),
    Column("last_login_at", UtcDateTime),
    Column("issuer", String(500)),
    Column("external_id", String(255)),
    Column("totp_secret", String(100)),
    Column("totp_step", BigInteger),
    Index("uq_accounts_identity", "issuer", "external_id", unique=True),
)

# The cookie's value is random; only its SHA-256 is stored. A session belongs to an account or to an API token.
# `address` and `agent` are those of the client at the login, as a trusted proxy and the client itself report them.
sessions = Table(
    "sessions",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("account_id", BigInteger),
    Column("token_id", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    Column("until", UtcDateTime, nullable=False, index=True),
    Column("revoked_at", UtcDateTime),
    Column("used_at", UtcDateTime),
    Column("address", String(100)),
    Column("agent", String(300)),
    Index(None, "account_id"),
)

# What the limits of logins count, until a time. `key` is the SHA-256 of what is counted, such as a name and an address;
# of a person who logged in, `place` is that of the address.
login_attempts = Table(
    "login_attempts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("key", String(64), nullable=False),
    Column("place", String(64)),
    Column("until", UtcDateTime, nullable=False, index=True),
    Index(None, "key", "until"),
)

# Append-only: `hash` covers the row and the hash before it, so that a changed or missing row breaks the chain.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("what", String(60), nullable=False),
    Column("subject", String(300), nullable=False),
    Column("before", LargeBinary, nullable=False),
    Column("after", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Index(None, "subject", "id"),
)

# A list with its filters under a name, of one person.
saved_views = Table(
    "saved_views",
    metadata,
    Column("who", String(200), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("page", String(40), nullable=False),
    Column("query", String(2000), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
