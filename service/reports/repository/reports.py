"""Published reports; a version never changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from service.clock import Clock
from service.reports.tables import reports
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.types import short, utc


@dataclass(frozen=True, slots=True)
class Published:
    """One published version of a week's report."""

    week: str
    version: int
    published_at: datetime
    by: str
    body: Mapping[str, Any]


class ReportReader:
    """Reads weekly reports."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def latest(self, week: str) -> Published | None:
        """The newest version of a week; None if it was never published."""
        row = self._connection.execute(
            select(reports).where(reports.c.week == week).order_by(reports.c.version.desc()).limit(1)
        ).one_or_none()
        return None if row is None else _published(row)

    def get(self, week: str, version: int) -> Published | None:
        """One version of a week."""
        row = self._connection.execute(
            select(reports).where(reports.c.week == week, reports.c.version == version)
        ).one_or_none()
        return None if row is None else _published(row)

    def versions(self, week: str) -> tuple[tuple[int, datetime], ...]:
        """The versions of a week and when each was published, newest first."""
        found = self._connection.execute(
            select(reports.c.version, reports.c.published_at)
            .where(reports.c.week == week)
            .order_by(reports.c.version.desc())
        )
        return tuple((row.version, row.published_at) for row in found)

    def list(self, *, limit: int, before: str | None = None) -> tuple[tuple[str, int, datetime, str], ...]:
        """Week, newest version, time and publisher of published reports, newest week first."""
        newest = select(reports.c.week, func.max(reports.c.version).label("version")).group_by(reports.c.week)
        if before is not None:
            newest = newest.where(reports.c.week < before)
        last = newest.order_by(reports.c.week.desc()).limit(limit).subquery()
        rows = self._connection.execute(
            select(reports.c.week, reports.c.version, reports.c.published_at, reports.c.publisher)
            .join(last, (reports.c.week == last.c.week) & (reports.c.version == last.c.version))
            .order_by(reports.c.week.desc())
        )
        return tuple((row.week, row.version, row.published_at, row.publisher) for row in rows)


class ReportRepository(ReportReader):
    """Reads and writes weekly reports."""

    def add(self, week: str, version: int, by: str, body: Mapping[str, Any]) -> bool:
        """Store a version; False if that version exists already (another process was faster)."""
        return bulk.insert_new(
            self._connection,
            reports,
            {
                "week": week,
                "version": version,
                "published_at": utc(self._clock.now()),
                "publisher": short(by) or "",
                "body": pack(body),
            },
        )


def _published(row: Row[Any]) -> Published:
    return Published(row.week, row.version, row.published_at, row.publisher, unpack(row.body))
