"""Tables of groups."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

groups = Table(
    "groups",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("made_at", UtcDateTime, nullable=False),
    Column("fingerprint", String(200), nullable=False),
    Column("state", String(12), nullable=False),
    Column("state_since", UtcDateTime, nullable=False),
    Column("title", String(300), nullable=False),
    Column("side", String(20), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("abstained", Boolean, nullable=False),
    Column("first_id", BigInteger, nullable=False),
    Column("last_id", BigInteger, nullable=False),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("users", BigInteger, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
    # Explains an escalation: failures in the last hours, the number expected from the past, and the probability of as
    # many.
    Column("recent", BigInteger),
    Column("expected", Float),
    Column("chance", Float),
    Column("assignee", String(200)),
    Column("ticket", String(500)),
    Column("resolved_at", UtcDateTime),
    Column("muted_until", UtcDateTime),
    Column("muted_failures", BigInteger),
    Column("muted_users", BigInteger),
    Column("merged_into", BigInteger),
    # Set once a person labelled the group; its failures then carry the person's label.
    Column("labelled_at", UtcDateTime),
    Column("review_at", UtcDateTime, nullable=False),
    # One index per order of the list, and one for groups whose state may change without new failures.
    Index("ix_groups_state", "state", "last_at", "id", "merged_into"),  # the end of the failure, used for counting
    Index("ix_groups_last_at", "last_at", "id"),
    Index("ix_groups_cost", "gpu_hours_lost", "id"),
    Index("ix_groups_state_cost", "state", "gpu_hours_lost", "id"),
    Index(
        "ix_groups_novel",
        "gpu_hours_lost",
        "id",
        postgresql_where=text("abstained AND merged_into IS NULL"),
        sqlite_where=text("abstained AND merged_into IS NULL"),
    ),
    Index("ix_groups_review_at", "review_at"),
)

group_fingerprints = Table(
    "group_fingerprints",
    metadata,
    Column("fingerprint", String(200), primary_key=True),
    Column("group_id", BigInteger, ForeignKey("groups.id", ondelete="CASCADE"), nullable=False, index=True),
    # The group that this fingerprint created, to which it returns when it is removed.
    Column("own_group", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
)

group_deltas = Table(
    "group_deltas",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("failure_id", BigInteger, nullable=False),
    Column("fingerprint", String(200), nullable=False),
    Column("sign", Integer, nullable=False),
)

group_hours = Table(
    "group_hours",
    metadata,
    Column("fingerprint", String(200), primary_key=True),
    Column("hour", UtcDateTime, primary_key=True),
    Column("failures", BigInteger, nullable=False),
    Column("gpu_hours_lost", Float, nullable=False),
)

# Affected places and people: `kind` is cluster, queue, team, user, node or image. Images are counted for all failures
# too, with an empty fingerprint; an image without a name is the sum of all images.
group_facets = Table(
    "group_facets",
    metadata,
    Column("fingerprint", String(200), primary_key=True),
    Column("kind", String(10), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("failures", BigInteger, nullable=False),
    Index("ix_group_facets_kind_name", "kind", "name", "fingerprint"),
)

group_splits = Table(
    "group_splits",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("fingerprint", String(200), nullable=False, index=True),
    Column("field", String(20), nullable=False),
    Column("value", String(200), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
)

# Comments and actions, as text.
group_notes = Table(
    "group_notes",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("group_id", BigInteger, ForeignKey("groups.id", ondelete="CASCADE"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("kind", String(12), nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "group_id", "id"),
)

# Mutes of single persons.
group_mutes = Table(
    "group_mutes",
    metadata,
    Column("who", String(200), primary_key=True),
    Column("group_id", BigInteger, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("muted_until", UtcDateTime),
    Column("muted_failures", BigInteger),
    Column("muted_users", BigInteger),
)
