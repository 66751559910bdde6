"""Server-sent events: new failures (GET /live), and automation of one failure (GET /failures/{id}/live)."""

import time
from collections.abc import AsyncIterator, Callable
from threading import Lock
from typing import Annotated, cast

import orjson
from anyio import sleep, to_thread
from fastapi import APIRouter, Depends, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from service.db.session import Store
from service.errors import Unavailable
from service.failures.records import FailureFilter
from service.incidents.records import Incident
from service.web import automation_views, views
from service.web.auth import OWN, READ
from service.web.pages.failure.page import Id
from service.web.pages.forms import failure_query
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
INTERVAL_S = 2.0
PING_S = 15
MAX_LISTENERS = 200
MAX_DURATION_S = 900.0  # then the browser reconnects and is authorised again
MAX_COUNTED = 500


class NewestFailure:
    """The id of the newest failure and the newest open incident, read at most every two seconds for all listeners."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._read_at = float("-inf")
        self._newest = 0
        self.incident: Incident | None = None
        self.listeners = 0

    def now(self) -> int:
        """The id of the newest failure."""
        with self._lock:
            if time.monotonic() - self._read_at >= INTERVAL_S / 2:
                with self._store.reading() as reading:
                    self._newest = reading.failures.newest()
                    self.incident = next(iter(reading.incidents.page(still_open=True, limit=1).items), None)
                self._read_at = time.monotonic()
            return self._newest

    def since(self, number: int, filters: FailureFilter) -> int:
        """The number of matching failures after an id, at most 500."""
        with self._store.reading() as reading:
            rows = reading.failures.page(filters, limit=MAX_COUNTED).items
        return sum(row.id > number for row in rows)


@router.get("/live", dependencies=[READ])
async def live(
    request: Request,
    services: InjectedServices,
    filters: Annotated[FailureQuery, Depends(failure_query)],
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    incident: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
) -> EventSourceResponse:
    """Sends `failures` with {"new": count} when there are new failures after id `after` that match the filters.

    Sends `incident` with {"id", "title", "jobs"} when an incident is opened after the one with id `incident`; without
    this parameter, after the request, and `open_incident` with {"id"}: what the page passes when it asks again.

    Raises:
        InvalidInput: a time is invalid.
        Unavailable: too many listeners.
    """
    wanted = views.failure_filter(services, filters)
    newest = _newest(request, services)
    return _answer(failure_events(newest, after, wanted, incident))


@router.get("/failures/{failure_id}/live", dependencies=[OWN])
async def live_of_failure(
    request: Request, services: InjectedServices, failure_id: Id, stands: Annotated[str, Query(max_length=40)] = ""
) -> EventSourceResponse:
    """Sends `automation` with {"stands": digest} when the automation state of a failure differs from `stands`.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
        Unavailable: too many listeners.
    """
    newest = _newest(request, services)
    row = (await to_thread.run_sync(views.failure, services, failure_id)).row

    def now() -> str:
        return automation_views.failure_automation(services, failure_id, row.cluster, row.job_id).state_digest

    return _answer(automation_events(newest, now, stands))


def _newest(request: Request, services: Services) -> NewestFailure:
    """The state shared by all listeners.

    Raises:
        Unavailable: too many listeners.
    """
    state = request.app.state
    if not hasattr(state, "newest"):
        state.newest = NewestFailure(services.store)
    newest = cast("NewestFailure", state.newest)
    if newest.listeners >= MAX_LISTENERS:
        raise Unavailable("too many pages receive live updates; this page does not update itself")
    return newest


def _answer(events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
    return EventSourceResponse(events, ping=PING_S, headers={"X-Accel-Buffering": "no"})


async def automation_events(newest: NewestFailure, now: Callable[[], str], seen: str) -> AsyncIterator[ServerSentEvent]:
    """An event whenever the result of `now` changes; ends as `failure_events` does."""
    newest.listeners += 1
    until = time.monotonic() + MAX_DURATION_S
    try:
        while time.monotonic() < until:
            found = await to_thread.run_sync(now)
            if found != seen:
                seen = found
                yield ServerSentEvent(orjson.dumps({"stands": seen}).decode(), event="automation")
            await sleep(INTERVAL_S)
    except Unavailable:
        return
    finally:
        newest.listeners -= 1


async def failure_events(
    newest: NewestFailure, after: int, filters: FailureFilter | None = None, incident: int | None = None
) -> AsyncIterator[ServerSentEvent]:
    """Events about new failures that match the filters; ends after 15 minutes, or when the database does not answer."""
    wanted = filters or FailureFilter()
    newest.listeners += 1
    last, until = after, time.monotonic() + MAX_DURATION_S
    known = incident
    try:
        while time.monotonic() < until:
            number = await to_thread.run_sync(newest.now)
            opened = newest.incident
            if opened is not None and known is not None and opened.id > known:
                shown = {"id": opened.id, "title": opened.title or opened.value, "jobs": opened.jobs}
                yield ServerSentEvent(orjson.dumps(shown).decode(), event="incident")
            first, known = known is None, max(known or 0, opened.id if opened else 0)
            if number > last:
                last = number
                count = await to_thread.run_sync(newest.since, after, wanted)
                yield ServerSentEvent(orjson.dumps({"new": count, "newest": number}).decode(), event="failures")
            if first:
                yield ServerSentEvent(orjson.dumps({"id": known}).decode(), event="open_incident")
            await sleep(INTERVAL_S)
    except Unavailable:
        return
    finally:
        newest.listeners -= 1
