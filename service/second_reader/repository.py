"""Second readings, and the failures that wait for one: table, records and queries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import BigInteger, Column, Float, Integer, String, Table, delete, exists, func, select, update

from service.failures.tables import failures, verdicts
from service.groups.tables import groups
from service.sql import bulk
from service.sql.packing import unpack
from service.sql.reader import Reader
from service.sql.types import UtcDateTime, metadata, short, utc

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

# asked: no answer yet, or the process ended; invalid: the answer did not follow the schema.
Status = Literal["asked", "answered", "undecided", "invalid"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A failure to ask about, with its kind."""

    failure_id: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RecentVerdict:
    """A version of a failure's verdict; `body` is verdict/1."""

    failure_id: int
    at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SecondReading:
    """The answer for one kind of failure. `side` and `cause` are None unless `status` is "answered"."""

    fingerprint: str
    failure_id: int
    asked_at: datetime
    status: Status
    model: str | None = None
    side: str | None = None
    cause: str | None = None
    confidence: float | None = None
    reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


class SecondReadingReader(Reader):
    """Reads second readings."""

    def of(self, fingerprint: str) -> SecondReading | None:
        """The reading of a kind of failure, None if there is none."""
        row = (
            self._connection.execute(select(second_readings).where(second_readings.c.fingerprint == fingerprint))
            .mappings()
            .one_or_none()
        )
        return None if row is None else SecondReading(**row)

    def count_since(self, at: datetime) -> int:
        """The number of kinds that were asked about since a time."""
        return self._connection.execute(
            select(func.count()).select_from(second_readings).where(second_readings.c.asked_at > utc(at))
        ).scalar_one()

    def waiting(self, since: datetime, limit: int, *, without: Collection[str] = ()) -> list[Candidate]:
        """Failures that ended since a time whose verdict abstains, then first failures of groups made since it.

        Only verdicts of the classifier, and only kinds that were not asked about; newest first. `without`: fingerprints
        that are left out.
        """
        known = exists().where(second_readings.c.fingerprint == failures.c.fingerprint)
        of_machine = select(failures.c.id, failures.c.fingerprint).where(
            failures.c.source == "machine", ~known, failures.c.fingerprint.not_in(without)
        )
        abstained = of_machine.where(failures.c.abstained, failures.c.ended_at >= utc(since))
        new_groups = of_machine.join(groups, groups.c.first_id == failures.c.id).where(
            groups.c.last_at >= utc(since), groups.c.made_at >= utc(since), groups.c.merged_into.is_(None)
        )
        found: dict[str, Candidate] = {}
        for query in (abstained, new_groups):
            rows = self._connection.execute(
                query.order_by(failures.c.ended_at.desc(), failures.c.id.desc()).limit(limit)
            )
            for row in rows:
                found.setdefault(row.fingerprint, Candidate(row.id, row.fingerprint))
        return list(found.values())[:limit]

    def recent_verdicts(self, after: datetime, limit: int) -> list[RecentVerdict]:
        """The newest versions of verdicts by the classifier after a time, oldest first."""
        rows = self._connection.execute(
            select(verdicts.c.failure_id, verdicts.c.at, verdicts.c.body)
            .where(verdicts.c.at > utc(after), verdicts.c.source == "machine", verdicts.c.body.is_not(None))
            .order_by(verdicts.c.at.desc())
            .limit(limit)
        ).all()
        return [RecentVerdict(row.failure_id, row.at, unpack(row.body)) for row in reversed(rows)]


class SecondReadingRepository(SecondReadingReader):
    """Reads and writes second readings."""

    def reserve(self, candidate: Candidate, now: datetime) -> bool:
        """Record that a kind is asked about; False if it was before."""
        return bulk.insert_new(
            self._connection,
            second_readings,
            {
                "fingerprint": candidate.fingerprint,
                "failure_id": candidate.failure_id,
                "asked_at": utc(now),
                "status": "asked",
                "prompt_tokens": 0,
                "completion_tokens": 0,
            },
        )

    def store(self, reading: SecondReading) -> None:
        """Store the answer for a kind that was reserved."""
        self._connection.execute(
            update(second_readings)
            .where(second_readings.c.fingerprint == reading.fingerprint)
            .values(
                status=reading.status,
                model=short(reading.model),
                side=reading.side,
                cause=reading.cause,
                confidence=reading.confidence,
                reason=short(reading.reason, 500),
                prompt_tokens=reading.prompt_tokens,
                completion_tokens=reading.completion_tokens,
            )
        )

    def release(self, fingerprint: str) -> None:
        """Forget that a kind was asked about, as there was no answer."""
        self._connection.execute(
            delete(second_readings).where(
                second_readings.c.fingerprint == fingerprint, second_readings.c.status == "asked"
            )
        )

    def release_before(self, at: datetime) -> None:
        """Forget the kinds that were asked about before a time without an answer: their process was killed."""
        self._connection.execute(
            delete(second_readings).where(second_readings.c.asked_at < utc(at), second_readings.c.status == "asked")
        )
