"""Publication of reports: a published report never changes; a later version of the same week lists the changes."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from service.clock import Clock
from service.db.session import Store
from service.deliveries.records import OutboxMessage
from service.errors import Conflict, DamagedData, NotFound
from service.formatting import number
from service.reports import build, document, gather
from service.reports.document import Report
from service.reports.records import EVERYTHING, Price
from service.reports.repository.reports import Published
from service.reports.scope import values, words
from service.reports.subscriptions import send_due
from service.reports.summary import message_facts
from service.stale_cache import StaleCache
from service.statistics.records import Scope
from service.weeks import Week, last_complete

TASK = "weekly report"
GRACE = timedelta(hours=6)  # after the end of a week, for late events and logs
LEASE = timedelta(minutes=15)
MOST_MISSED = 12  # weeks before the last one that are published later (judgement: a quarter)
SERVICE = "the service"
Versions = tuple[tuple[int, datetime], ...]  # number and time of publication, newest first
SLOW_S = 0.5  # a report that takes longer to build is cached too: a small team of a large fleet
LARGE = 1_000  # failures in a week; above it, building a report takes too long for a page


class ReportService:
    """Published reports, and the present state of any week."""

    def __init__(
        self,
        store: Store,
        zone: ZoneInfo,
        clock: Clock,
        drafts: StaleCache[Report] | None = None,
        *,
        price: tuple[float | None, str] = (None, ""),
    ) -> None:
        """With `drafts` the present state of a large week may come from that cache; the report shows its time.

        `price`: of a GPU-hour, and its currency; None: the report shows no costs.
        """
        self._price = None if price[0] is None else Price(price[0], price[1])
        self._drafts = drafts
        self._store = store
        self._zone = zone
        self._clock = clock
        self._holder = f"publisher-{secrets.token_hex(6)}"

    def current(self, week: Week, scope: Scope = EVERYTHING) -> Report:
        """The report of the week from the present rows, published or not.

        Raises:
            InvalidInput: no job of the scope is known.
            Unavailable: the database does not answer.
        """
        return build.build(gather.gather(self._store, week, self._zone, self._clock.now(), scope, self._price))

    def read(self, week: Week, version: int | None = None, scope: Scope = EVERYTHING) -> Report:
        """The published report (`version`, by default the newest), or the present state of an unpublished week.

        Raises:
            Unavailable: the database does not answer.
            NotFound: no such version.
            InvalidInput: the week is not published, and no job of the scope is known.
        """
        return self.read_with_versions(week, version, scope)[0]

    def read_with_versions(
        self, week: Week, version: int | None = None, scope: Scope = EVERYTHING
    ) -> tuple[Report, Versions]:
        """The report as by `read`, and the published versions of the week, both from one snapshot of the database.

        The present state of an unpublished week comes from its own snapshot, or from the cache of drafts.

        Raises:
            Unavailable: the database does not answer.
            NotFound: no such version.
            InvalidInput: the week is not published, and no job of the scope is known.
        """
        with self._store.reading() as reading:
            stored = reading.reports
            found = stored.latest(str(week), scope) if version is None else stored.get(str(week), version, scope)
            versions = stored.versions(str(week), scope)
        return self._report(week, version, scope, found), versions

    def _report(self, week: Week, version: int | None, scope: Scope, found: Published | None) -> Report:
        if found is None and version is not None:
            limited = f" of {words(scope)}" if scope != EVERYTHING else ""
            raise NotFound(f"week {week} has no published version {version}{limited}")
        if found is None:
            return self._draft(week, scope)
        return document.from_wire(found.body)

    def _draft(self, week: Week, scope: Scope) -> Report:
        if self._drafts is None:
            return self.current(week, scope)
        start = self._clock.monotonic()
        return self._drafts.get(
            (str(week), scope),
            lambda: self.current(week, scope),
            start,
            cacheable=lambda made: _large(made) or self._clock.monotonic() - start > SLOW_S,
        )

    def publish(self, week: Week, actor: str = SERVICE, scope: Scope = EVERYTHING) -> Report:
        """Publish the present state of the week; if nothing changed since the last version, that version is returned.

        Endpoints are told of the report of all jobs; one of a scope is for those who subscribed to it.

        Raises:
            Conflict: the week is not over, or another process published it at the same time.
            InvalidInput: no job of the scope is known.
            Unavailable: the database does not answer.
        """
        if self._clock.now() < week.span(self._zone)[1]:
            raise Conflict(f"week {week} is not over: its report can be published after it ends")
        made = self.current(week, scope)
        with self._store.reading() as reading:
            last = reading.reports.latest(str(week), scope)
        before = None
        with suppress(DamagedData):  # it is replaced by a new version
            before = None if last is None else document.from_wire(last.body)
        if last is not None:
            moved = () if before is None else changed_figures(before.figures, made.figures)
            if before is not None and not moved:
                return before
            made = replace(made, version=last.version + 1, moved=moved)
        with self._store.unit_of_work() as work:
            if not work.reports.add(str(week), made.version, actor, made.to_wire(), scope):
                raise Conflict(f"week {week} was published by another process at the same time")
            if scope == EVERYTHING:
                work.outbox.add([_message(made)])
            facts = {"version": made.version, **values(scope)}
            work.audit_log.append(actor, "report.published", f"report/{week}", after=facts)
        return made

    def _published(self, week: Week, scope: Scope) -> Report:
        """The newest published version of a finished week, which is published if it was not since the late events."""
        found = self._complete(week, scope)
        return self.publish(week, scope=scope) if found is None else document.from_wire(found.body)

    def _complete(self, week: Week, scope: Scope = EVERYTHING) -> Published | None:
        """The newest published version of a week; None without one that was made after the time for late events."""
        with self._store.reading() as reading:
            found = reading.reports.latest(str(week), scope)
        early = found is not None and found.published_at < week.span(self._zone)[1] + GRACE
        return None if early else found

    def run_if_due(self) -> Report | None:
        """Publish the last week if it is due, of all jobs and of each scope that somebody subscribed to, and send it.

        A report that a person published before it is due gets a new version if it has changed. Weeks that ended while
        no process ran are published too, and not sent. One of several processes does it.

        Raises:
            Unavailable: the database does not answer; calling again later does the same.
        """
        now = self._clock.now()
        week = last_complete(now, self._zone)
        if now < week.span(self._zone)[1] + GRACE:
            return None
        with self._store.reading() as reading:
            last = reading.task_leases.last(TASK)
        if last == str(week):
            return None
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(TASK, self._holder, due=str(week), lease=LEASE):
                return None
        for missed in self._missed(last, week):
            self._published(missed, EVERYTHING)
        made = self.publish(week) if self._complete(week) is None else None
        send_due(self._store, week, self._published)
        with self._store.unit_of_work() as work:
            work.task_leases.done(TASK, self._holder, due=str(week))
        return made

    def _missed(self, last: str | None, week: Week) -> list[Week]:
        """The weeks after the last one that was handled and before this one, oldest first; none before the first."""
        earlier = [week.earlier(number) for number in range(1, MOST_MISSED + 1)]
        return [one for one in reversed(earlier) if last is not None and str(one) > last]


def _large(report: Report) -> bool:
    return (report.figures.get("failed") or 0) >= LARGE


def changed_figures(
    before: Mapping[str, float | int | None], after: Mapping[str, float | int | None]
) -> tuple[str, ...]:
    """The changed figures between two versions of a week."""
    text = build.wording()["moved"]["figure"]
    return tuple(
        text.format(name=name.replace("_", " "), before=_shown(before.get(name)), after=_shown(after.get(name)))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return number(value) if value == int(value) else number(value, 4)


def _message(report: Report) -> OutboxMessage:
    return OutboxMessage("report.published", f"report/{report.week}", message_facts(report))
