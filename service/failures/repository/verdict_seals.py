"""Seals of verdicts: a chained digest of every version as it was written, so that later changes are detected.

A record holds the basis of an advice: the event (version 1), the evidence and features, model, rules and policy.
What retention removed can't be checked any more and is counted as removed; stored records must be unchanged.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, insert, or_, select, tuple_

from service.errors import DamagedData, damage_translated
from service.failures.tables import logs, verdict_models, verdict_seals, verdicts
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.packing import pack, unpack
from service.sql.reader import Reader
from service.sql.types import CHAIN_START, utc

MOST = 2_000  # records of one seal
FRESH = 1_000  # unsealed verdicts that a page counts at most
LOCK = 0x6661756C_7365616C
_KIND = "verdicts"
_PORTION = 500
_SEALS = 10  # that are in memory at once while they are checked
_Digests = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of a check: intact, removed and changed records (failure id and version), and broken seals."""

    intact: int
    removed: int
    changed: tuple[tuple[int, int], ...]
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Number of verdicts of one model with one version of the rules, including those that retention removed."""

    model: str
    rules: str
    verdicts: int
    first_at: datetime
    last_at: datetime


class VerdictSealReader(Reader):
    """Reads verdict seals."""

    def models(self) -> tuple[ModelUse, ...]:
        """Every model that made verdicts, most recently used first; under high load recent ones may be missing."""
        last = self._connection.execute(select(verdict_seals).order_by(verdict_seals.c.id.desc()).limit(1)).first()
        fresh = select(verdicts.c.model, verdicts.c.rules, verdicts.c.at)
        if last is not None:
            fresh = fresh.where(*_behind(last))
        rows = self._connection.execute(fresh.order_by(verdicts.c.at).limit(FRESH)).all()
        found = {
            (row.model, row.rules): ModelUse(row.model, row.rules, row.verdicts, utc(row.first_at), utc(row.last_at))
            for row in self._connection.execute(select(verdict_models))
        }
        for use in _uses(rows):
            before = found.get((use.model, use.rules))
            if before is not None:
                use = replace(use, verdicts=before.verdicts + use.verdicts, first_at=before.first_at)  # noqa: PLW2901 - the sum of both
            found[use.model, use.rules] = use
        return tuple(sorted(found.values(), key=lambda one: (one.last_at, one.model, one.rules), reverse=True))

    def check(self) -> Checked:
        """Compare every sealed record with the stored rows."""
        intact = removed = 0
        changed: list[tuple[int, int]] = []
        broken: list[int] = []
        before, number = CHAIN_START, 0
        for row in self._seals():
            chained = _chained(before, row.id, utc(row.since), utc(row.until), row.entries)
            if row.id != number + 1 or chained != row.hash:
                broken.append(row.id)
            before, number = row.hash, row.id
            wanted = _entries(row)
            if not wanted and row.id not in broken:
                broken.append(row.id)
            now = dict(self._digests(list(wanted)))
            for key, digests in wanted.items():
                found = now.get(key, (None, None))
                if any(is_now is not None and was != is_now for was, is_now in zip(digests, found, strict=True)):
                    changed.append(key)
                elif None in found[: 1 + (digests[1] is not None)]:
                    removed += 1
                else:
                    intact += 1
        return Checked(intact, removed, tuple(changed), tuple(broken))

    def _seals(self) -> Iterator[Row[Any]]:
        last = 0
        while True:
            query = select(verdict_seals).where(verdict_seals.c.id > last).order_by(verdict_seals.c.id).limit(_SEALS)
            rows = self._connection.execute(query).all()
            yield from rows
            if len(rows) < _SEALS:
                return
            last = rows[-1].id

    def _digests(self, keys: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], _Digests]]:
        """The digests of each stored record: of the verdict and, for version 1, of its event.

        None stands for rows that retention removed.
        """
        for part in chunks(keys, _PORTION):
            rows = self._connection.execute(
                select(verdicts, logs.c.event)
                .outerjoin(
                    logs, and_(logs.c.failure_id == verdicts.c.failure_id, logs.c.attempt_id == verdicts.c.failure_id)
                )
                .where(bulk.row_in(self._connection, (verdicts.c.failure_id, verdicts.c.version), part))
            )
            for row in rows:
                event = None if row.version > 1 or row.event is None else sha256(bytes(row.event)).hexdigest()
                yield (row.failure_id, row.version), (_of_verdict(row), event)


class VerdictSealRepository(VerdictSealReader):
    """Reads and writes verdict seals."""

    def seal(self, until: datetime) -> int:
        """Seal a portion of the verdicts that were written before `until` and are not sealed yet; their number.

        `until` must be older than any open transaction: verdicts that are written before it later are never sealed.
        """
        bulk.lock(self._connection, [LOCK])
        last = self._connection.execute(select(verdict_seals).order_by(verdict_seals.c.id.desc()).limit(1)).first()
        order = (verdicts.c.at, verdicts.c.failure_id, verdicts.c.version)
        query = (
            select(*order, verdicts.c.model, verdicts.c.rules)
            .where(verdicts.c.at < utc(until))
            .order_by(*order)
            .limit(MOST)
        )
        if last is not None:
            query = query.where(*_behind(last))
        found = self._connection.execute(query).all()
        if not found:
            return 0
        digests = dict(self._digests([(row.failure_id, row.version) for row in found]))
        entries = [
            [row.failure_id, row.version, *digests[row.failure_id, row.version]]
            for row in found
            if (row.failure_id, row.version) in digests or row is found[-1]
        ]
        packed = pack(entries)
        first, end = utc(found[0].at), utc(found[-1].at)
        number = 1 if last is None else last.id + 1
        self._connection.execute(
            insert(verdict_seals).values(
                id=number,
                kind=_KIND,
                since=first,
                until=end,
                records=len(entries),
                entries=packed,
                hash=_chained(CHAIN_START if last is None else last.hash, number, first, end, packed),
            )
        )
        self._count(found)
        return len(found)

    def _count(self, rows: Sequence[Row[*tuple[Any, ...]]]) -> None:
        for use in _uses(rows):
            adding = upsert(self._connection, verdict_models).values(**asdict(use))
            self._connection.execute(
                adding.on_conflict_do_update(
                    index_elements=["model", "rules"],
                    set_={"verdicts": verdict_models.c.verdicts + use.verdicts, "last_at": use.last_at},
                )
            )


def _entries(row: Row[Any]) -> dict[tuple[int, int], tuple[Any, Any]]:
    """The digests of a seal by failure and version; none if they can't be read, which no seal has."""
    with suppress(DamagedData), damage_translated():
        return {(int(one[0]), int(one[1])): (one[2], one[3]) for one in unpack(row.entries)}
    return {}


def _behind(last: Row[Any]) -> tuple[ColumnElement[bool], ...]:
    """Conditions that select verdicts written after a seal."""
    with damage_translated():
        edge = [int(number) for number in unpack(last.entries)[-1][:2]]
    same = and_(verdicts.c.at == last.until, tuple_(verdicts.c.failure_id, verdicts.c.version) > tuple_(*edge))
    return or_(verdicts.c.at > last.until, same), verdicts.c.at >= last.until


def _uses(rows: Sequence[Row[*tuple[Any, ...]]]) -> list[ModelUse]:
    """The use of each model in these verdicts, which are sorted by time."""
    found: dict[tuple[str, str], list[datetime]] = {}
    for row in rows:
        found.setdefault((row.model, row.rules), []).append(utc(row.at))
    return [ModelUse(*key, len(times), times[0], times[-1]) for key, times in sorted(found.items())]


def _of_verdict(row: Row[Any]) -> str | None:
    if row.body is None:
        return None
    texts = "\x1f".join(
        (str(row.failure_id), str(row.version), utc(row.at).isoformat(), row.source, row.model, row.rules, row.policy)
    )
    return sha256(texts.encode() + b"\x1e" + bytes(row.body)).hexdigest()


def _chained(before: bytes, number: int, since: datetime, until: datetime, entries: bytes) -> bytes:
    return sha256(before + f"{number} {since.isoformat()} {until.isoformat()} ".encode() + bytes(entries)).digest()
