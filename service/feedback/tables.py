"""Tables of feedback."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from service.sql.types import BigId, UtcDateTime, metadata

# Every feedback of a person on a verdict; never changed afterwards.
feedback = Table(
    "feedback",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("failure_id", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("version", Integer, nullable=False),
    Column("said_side", String(20), nullable=False),
    Column("said_cause", String(40), nullable=False),
    Column("side", String(20)),
    Column("cause", String(40)),
    Column("category", String(40)),
    Column("symptom", String(40)),
    Column("retry", String(20)),
    Column("note", Text),
    Column("model_shown", Boolean, nullable=False),
    Column("evidence", LargeBinary),
    Column("held", String(200)),  # why the label waits for a second person, None if it does not
    Column("withdrawn_by", String(200)),  # who withdrew it; it no longer counts
    Index(None, "failure_id", "id"),
    Index("ix_feedback_kind", "kind", "at"),
    Index("ix_feedback_at", "at"),
)

# The resulting label: one row per labelled failure.
labels = Table(
    "labels",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("side", String(20)),
    Column("cause", String(40)),
    Column("category", String(40)),
    Column("symptom", String(40)),
    Column("retry", String(20)),
    Column("people", Integer, nullable=False),
    Column("disputed", Boolean, nullable=False),
    Column("contested", Boolean, nullable=False),
    Column("golden", Boolean, nullable=False),
    Column("waiting", Boolean, nullable=False),  # disputed, contested or held: a person has to decide
    Column("held", String(200)),
    Index("ix_labels_queue", "at", "failure_id", postgresql_where=text("waiting"), sqlite_where=text("waiting")),
    Index("ix_labels_at", "at", "failure_id"),
)

# The latest label that a person gave to a group, with what it replaced, so that it can be withdrawn. `judgements`: the
# failures that got it and the feedback on each. `earlier`: the labels before it, oldest first, with the same fields.
group_labels = Table(
    "group_labels",
    metadata,
    Column("group_id", BigId, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("side_before", String(20), nullable=False),
    Column("cause_before", String(40), nullable=False),
    Column("abstained_before", Boolean, nullable=False),
    Column("labelled_before", UtcDateTime),
    Column("judgements", LargeBinary, nullable=False),
    Column("earlier", LargeBinary),
)

# The weekly sample by stratum that people judge without seeing the verdict, with the machine's answer to be judged.
audit_samples = Table(
    "audits",
    metadata,
    Column("week", String(10), primary_key=True),
    Column("failure_id", BigInteger, primary_key=True),
    Column("feedback_id", BigInteger),
    Column("stratum", String(20)),
    Column("population", Integer),  # failures of the stratum in the week
    Column("machine_side", String(20)),
    Column("machine_cause", String(40)),
)
