"""Table of second readings."""

from sqlalchemy import BigInteger, Column, Float, Integer, String, Table

from service.sql.types import UtcDateTime, metadata

# One row for each kind of failure: a kind is asked about once. Nothing that decides on actions reads this table.
second_readings = Table(
    "second_readings",
    metadata,
    Column("fingerprint", String(200), primary_key=True),
    Column("failure_id", BigInteger, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False, index=True),
    Column("status", String(12), nullable=False),
    Column("model", String(200)),
    Column("side", String(20)),
    Column("cause", String(40)),
    Column("confidence", Float),
    Column("reason", String(500)),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
)
