"""Published reports; a version never changes. Those of a scope have their own table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, func, select, tuple_

from service.contracts.page import Page
from service.reports.records import EVERYTHING, PublishedReport
from service.reports.tables import reports, scoped_reports
from service.sql import bulk
from service.sql import paging as cursors
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import short, utc
from service.statistics.records import Scope

_SCOPED = "scoped-reports"


@dataclass(frozen=True, slots=True)
class Published:
    """One published version of a week's report."""

    week: str
    version: int
    published_at: datetime
    by: str
    body: Mapping[str, Any]


class ReportReader(TimedReader):
    """Reads weekly reports."""

    def latest(self, week: str, scope: Scope = EVERYTHING) -> Published | None:
        """The newest version of a week; None if it was never published."""
        table, own = _place(week, scope)
        row = self._connection.execute(
            select(table).where(*own).order_by(table.c.version.desc()).limit(1)
        ).one_or_none()
        return None if row is None else _published(row)

    def get(self, week: str, version: int, scope: Scope = EVERYTHING) -> Published | None:
        """One version of a week."""
        table, own = _place(week, scope)
        row = self._connection.execute(select(table).where(*own, table.c.version == version)).one_or_none()
        return None if row is None else _published(row)

    def versions(self, week: str, scope: Scope = EVERYTHING) -> tuple[tuple[int, datetime], ...]:
        """The versions of a week and when each was published, newest first."""
        table, own = _place(week, scope)
        found = self._connection.execute(
            select(table.c.version, table.c.published_at).where(*own).order_by(table.c.version.desc())
        )
        return tuple((row.version, row.published_at) for row in found)

    def list(self, *, limit: int, before: str | None = None, scope: Scope = EVERYTHING) -> tuple[PublishedReport, ...]:
        """The newest versions of the published reports of all jobs or of a scope, newest week first."""
        table, own = _place(None, scope)
        newest = select(table.c.week, func.max(table.c.version).label("version")).where(*own).group_by(table.c.week)
        if before is not None:
            newest = newest.where(table.c.week < before)
        last = newest.order_by(table.c.week.desc()).limit(limit).subquery()
        rows = self._connection.execute(
            select(table.c.week, table.c.version, table.c.published_at, table.c.publisher)
            .join(last, (table.c.week == last.c.week) & (table.c.version == last.c.version))
            .where(*own)
            .order_by(table.c.week.desc())
        )
        return tuple(PublishedReport(row.week, row.version, row.published_at, row.publisher, scope) for row in rows)

    def scoped(self, *, limit: int, cursor: str | None = None) -> Page[PublishedReport]:
        """One page of the newest versions of the published reports of all scopes, newest week first.

        Raises:
            InvalidInput: a limit out of range, or a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        key = (scoped_reports.c.week, scoped_reports.c.cluster, scoped_reports.c.team)
        newest = select(*key, func.max(scoped_reports.c.version).label("version")).group_by(*key)
        if cursor is not None:
            newest = newest.where(tuple_(*key) < cursors.decode(cursor, _SCOPED, str, str, str))
        last = newest.order_by(*(column.desc() for column in key)).limit(limit + 1).subquery()
        same = [scoped_reports.c[name] == last.c[name] for name in ("week", "cluster", "team", "version")]
        found = self._connection.execute(
            select(*key, scoped_reports.c.version, scoped_reports.c.published_at, scoped_reports.c.publisher)
            .join(last, and_(*same))
            .order_by(*(column.desc() for column in key))
        ).all()
        return cursors.page_of(
            found,
            limit,
            _listed,
            _SCOPED,
            lambda last: (last.week, last.scope.cluster or "", last.scope.team or ""),
        )


class ReportRepository(ReportReader):
    """Reads and writes weekly reports."""

    def add(self, week: str, version: int, actor: str, body: Mapping[str, Any], scope: Scope = EVERYTHING) -> bool:
        """Store a version; False if that version exists already (another process was faster)."""
        table, _ = _place(week, scope)
        own = {} if scope == EVERYTHING else {"cluster": _name(scope.cluster), "team": _name(scope.team)}
        return bulk.insert_new(
            self._connection,
            table,
            {
                "week": week,
                **own,
                "version": version,
                "published_at": utc(self._clock.now()),
                "publisher": short(actor) or "",
                "body": pack(body),
            },
        )


def _place(week: str | None, scope: Scope) -> tuple[Table, list[ColumnElement[bool]]]:
    """The table of a scope, and the conditions on its rows of a week (None: of all weeks)."""
    table = reports if scope == EVERYTHING else scoped_reports
    own = [] if week is None else [table.c.week == week]
    if scope != EVERYTHING:
        own += [table.c.cluster == _name(scope.cluster), table.c.team == _name(scope.team)]
    return table, own


def _name(value: str | None) -> str:
    return short(value) or ""


def _published(row: Row[Any]) -> Published:
    return Published(row.week, row.version, row.published_at, row.publisher, unpack(row.body))


def _listed(row: Row[Any]) -> PublishedReport:
    scope = Scope(row.cluster or None, row.team or None)
    return PublishedReport(row.week, row.version, row.published_at, row.publisher, scope)
