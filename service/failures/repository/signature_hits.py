"""Counts the failures whose evidence has a line of each signature."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sqlalchemy import select

from service.failures.tables import failures, verdicts
from service.sql.packing import unpack
from service.sql.reader import Reader
from service.sql.types import utc

MOST = 10_000  # failures that are read: about a second, and the result is cached (judgement)
LISTED = 50  # failures of one signature whose ids are kept: a page of the list of failures
_PORTION: Final = 500


@dataclass(frozen=True, slots=True)
class SignatureHits:
    """The failures of one signature. `last_at`: end of the newest one; `newest`: ids of the newest, newest first."""

    signature: str
    failures: int
    last_at: datetime
    newest: tuple[int, ...]

    @property
    def last_failure_id(self) -> int:
        """The newest failure."""
        return self.newest[0]


@dataclass(frozen=True, slots=True)
class HitCounts:
    """The hits of all signatures in the failures that were read, by id; `complete`: whether those are all."""

    hits: dict[str, SignatureHits]
    failures: int
    complete: bool


class SignatureHitReader(Reader):
    """Reads hits of signatures from stored verdicts."""

    def count(self, since: datetime, most: int | None = None) -> HitCounts:
        """Count the hits in the newest `most` (default: `MOST`) failures since a time, by their current verdicts."""
        most = MOST if most is None else most
        hits: dict[str, SignatureHits] = {}
        read = 0
        ids = self._newest(since, most + 1)
        for begin in range(0, min(len(ids), most), _PORTION):
            for failure_id, at, signatures in self._evidence(ids[begin : min(begin + _PORTION, most)]):
                read += 1
                for name in signatures:
                    known = hits.get(name) or SignatureHits(name, 0, at, ())
                    newest = known.newest if len(known.newest) == LISTED else (*known.newest, failure_id)
                    hits[name] = replace(known, failures=known.failures + 1, newest=newest)
        return HitCounts(hits, read, complete=len(ids) <= most)

    def _newest(self, since: datetime, most: int) -> list[int]:
        rows = self._connection.execute(
            select(failures.c.id)
            .where(failures.c.ended_at >= since)
            .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
            .limit(most)
        )
        return [row.id for row in rows]

    def _evidence(self, ids: list[int]) -> Iterator[tuple[int, datetime, set[str]]]:
        """Yield id, end and signatures of failures, newest first; those removed by retention are left out."""
        rows = self._connection.execute(
            select(failures.c.id, failures.c.ended_at, verdicts.c.body)
            .join(verdicts, (verdicts.c.failure_id == failures.c.id) & (verdicts.c.version == failures.c.version))
            .where(failures.c.id.in_(ids), verdicts.c.body.is_not(None))
            .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        )
        for row in rows:
            evidence = unpack(row.body).get("evidence") or ()
            yield row.id, utc(row.ended_at), {line["signature"] for line in evidence if line.get("signature")}
