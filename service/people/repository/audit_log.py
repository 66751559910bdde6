"""The audit log: who changed what, chained by hashes, so that changed, removed or inserted rows are detected.

With a key, which is kept outside the database, the hashes are HMAC-SHA256 (RFC 2104): rows cannot be chained again
without the key. Entries from before there was a key keep their plain SHA-256; none follows a keyed one.
"""

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, RowMapping, func, insert, select

from service.clock import Clock
from service.contracts.page import Page
from service.errors import ConfigurationError, DamagedData
from service.people.tables import audit_log
from service.sql import bulk
from service.sql.packing import dump, unpack
from service.sql.types import CHAIN_START, HIGHEST_ID, clean, utc

LOCK = 0x6661756C_61756474  # one writer at a time, so that each row includes the hash of the previous one
_UNREADABLE = "(can't be read: changed in the database)"
_PORTION = 1_000
_LONGEST_CURSOR = 18  # digits of an id that the database can compare


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change: `what` (such as "verdict.corrected") of `subject` (such as "failure/12"), before and after."""

    id: int
    at: datetime
    who: str
    what: str
    subject: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are wanted; None: any. `since` is included, `until` is not."""

    subject: str | None = None
    who: str | None = None
    what: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """The conditions of a query."""
        named = {audit_log.c.subject: self.subject, audit_log.c.who: self.who, audit_log.c.what: self.what}
        yield from (column == clean(text) for column, text in named.items() if text is not None)
        if self.since is not None:
            yield audit_log.c.at >= utc(self.since)
        if self.until is not None:
            yield audit_log.c.at < utc(self.until)


@dataclass(frozen=True, slots=True)
class BrokenChain:
    """The first entry whose hash does not follow from the entry before it."""

    id: int
    detail: str


_ALL = AuditFilter()


class AuditLogReader:
    """Reads audit log entries."""

    def __init__(self, connection: Connection, clock: Clock, key: bytes | None = None) -> None:
        self._connection = connection
        self._clock = clock
        self._key = key

    def head(self) -> tuple[int, bytes]:
        """The number of entries and the hash of the last one; (0, start) if there is none."""
        row = self._connection.execute(
            select(audit_log.c.id, audit_log.c.hash).where(
                audit_log.c.id == select(func.max(audit_log.c.id)).scalar_subquery()
            )
        ).first()
        return (0, CHAIN_START) if row is None else (row.id, bytes(row.hash))

    def hash_at(self, number: int) -> bytes | None:
        """The hash of an entry; None if there is none."""
        row = self._connection.execute(select(audit_log.c.hash).where(audit_log.c.id == number)).first()
        return None if row is None else bytes(row.hash)

    def check_key(self) -> None:
        """Return unless an entry without a key would follow one with a key, which `verify` reports as altered for ever.

        Raises:
            ConfigurationError: there is no key, and the last entry was written with one (or changed since).
        """
        if self._key is not None:
            return
        rows = self._connection.execute(select(audit_log).order_by(audit_log.c.id.desc()).limit(2)).all()
        before = bytes(rows[1].hash) if len(rows) > 1 else CHAIN_START
        if rows and chained(before, rows[0]._mapping) != bytes(rows[0].hash):  # noqa: SLF001 - as in `verify`
            raise ConfigurationError(
                "FAULTLINE_AUDIT_KEY: expected the key of the service, since the last entry of the audit log was made"
                " with a key (FAULTLINE_AUDIT_KEY_FILE), or was changed since (faultline audit verify)"
            )

    def page(self, *, limit: int, cursor: str | None = None, wanted: AuditFilter = _ALL) -> Page[AuditEntry]:
        """Entries, newest first."""
        text = cursor or ""
        known = text.isascii() and text.isdigit() and len(text) <= _LONGEST_CURSOR
        before = int(text) if known else 10**_LONGEST_CURSOR  # a bound even for the first page: no scan
        query = select(audit_log).where(audit_log.c.id < before, *wanted.conditions())
        if wanted.subject is not None:  # in the order of the index: no planner walks through the ids of all subjects
            query = query.order_by(audit_log.c.subject.desc())
        query = query.order_by(audit_log.c.id.desc())
        rows = self._connection.execute(query.limit(limit + 1)).all()
        items = tuple(_entry(row) for row in rows[:limit])
        return Page(items, str(items[-1].id) if len(rows) > limit else None)

    def verify(self) -> tuple[int, BrokenChain | None]:
        """Verify the chain; returns the number of valid entries and the first invalid one."""
        before, number, keyed = CHAIN_START, 0, False
        for row in self._rows():
            if row.id != number + 1:
                return number, BrokenChain(row.id, f"expected entry {number + 1}: one was removed")
            values = row._mapping  # noqa: SLF001 - SQLAlchemy's documented name
            if self._key is not None and hmac.compare_digest(chained(before, values, self._key), bytes(row.hash)):
                keyed = True
            elif keyed or chained(before, values) != row.hash:
                without = "" if self._key is not None else ", or it was written with a key (FAULTLINE_AUDIT_KEY)"
                return number, BrokenChain(row.id, f"its content, or the entry before it, was changed{without}")
            before, number = row.hash, row.id
        return number, None

    def _rows(self) -> Iterator[Row[Any]]:
        last = 0
        while True:
            rows = self._connection.execute(
                select(audit_log).where(audit_log.c.id > last).order_by(audit_log.c.id).limit(_PORTION)
            ).all()
            yield from rows
            if len(rows) < _PORTION:
                return
            last = rows[-1].id


class AuditLogRepository(AuditLogReader):
    """Reads and writes audit log entries."""

    def append(self, actor: str, what: str, subject: str, *, before: Any = None, after: Any = None) -> None:
        """Add an entry in the transaction of the change it records.

        Raises:
            DamagedData: no further entry can follow the last one.
        """
        bulk.lock(self._connection, [LOCK])
        last, before_hash = self.head()
        number = last + 1
        if number > HIGHEST_ID:
            raise DamagedData(
                "the audit log has an entry with the highest number that there is: faultline audit verify"
            )
        at = utc(self._clock.now())
        row = {
            "id": number,
            "at": at,
            "who": clean(actor[:200]),
            "what": what,
            "subject": clean(subject[:300]),
            "before": dump(before),
            "after": dump(after),
        }
        digest = chained(before_hash, row, self._key)
        self._connection.execute(insert(audit_log).values(**row, hash=digest))


def chained(before: bytes, row: RowMapping | Mapping[str, Any], key: bytes | None = None) -> bytes:
    """SHA-256 over the previous hash and the values of the row; with a key, HMAC-SHA256."""
    values = [
        row["id"],
        utc(row["at"]).isoformat(),
        row["who"],
        row["what"],
        row["subject"],
        bytes(row["before"]).hex(),
        bytes(row["after"]).hex(),
    ]
    text = before + orjson.dumps(values)
    return sha256(text).digest() if key is None else hmac.new(key, text, sha256).digest()


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(row.id, row.at, row.who, row.what, row.subject, _shown(row.before), _shown(row.after))


def _shown(value: bytes) -> Any:
    """A value before or after a change. One that can't be read must not hide the entry and those around it."""
    try:
        return unpack(value)
    except DamagedData:
        return _UNREADABLE
