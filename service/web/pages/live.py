"""Server-sent events: new failures (GET /live), and automation of one failure (GET /failures/{id}/live)."""

import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from threading import Lock
from typing import Annotated, cast

import orjson
from anyio import sleep, to_thread
from fastapi import APIRouter, Depends, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Message, Receive, Scope, Send

from service.db.session import Store
from service.errors import Forbidden, Unauthorized, Unavailable
from service.failures.records import FailureFilter
from service.incidents.records import Incident
from service.web import automation_views, views
from service.web.api.parameters import Id
from service.web.auth import OWN, READ, Principal, bearer_of, identify
from service.web.limits.caller_limits import CountedAnswer
from service.web.pages.forms import failure_query
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
INTERVAL_S = 2.0
PING_S = 15
MAX_DURATION_S = 900.0  # then the browser reconnects
RECHECK_S = 30.0  # until it is checked again that the caller may receive them
MAX_COUNTED = 500


class NewestFailure:
    """The id of the newest failure and the newest open incident, read at most every two seconds for all listeners."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._read_at = float("-inf")
        self._newest = 0
        self.incident: Incident | None = None

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


class LiveUpdates(CountedAnswer, EventSourceResponse):
    """Events until they end."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], ended: Callable[[], None]) -> None:
        super().__init__(events, ping=PING_S, headers={"X-Accel-Buffering": "no"})
        self.counts_until_its_end(ended)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; when the server ends, they end as a whole answer does."""
        is_whole = False

        async def passed_on(message: Message) -> None:
            nonlocal is_whole
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await super().__call__(scope, receive, passed_on)
        if not is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@router.get("/live")
async def live(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    incident: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
) -> EventSourceResponse:
    """Sends `failures` with {"new": count} when there are new failures after id `after` that match the filters.

    Sends `incident` with {"id", "title", "jobs"} when an incident is opened after the one with id `incident`; without
    this parameter, after the request, and `open_incident` with {"id"}: what the page passes when it asks again.

    Raises:
        InvalidInput: a time is invalid.
        TooManyRequests: too many pages receive updates already.
    """
    wanted = views.failure_filter(services, filters)
    return _answer(request, services, principal, failure_events(_newest(request, services), after, wanted, incident))


@router.get("/failures/{failure_id}/live")
async def live_of_failure(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, OWN],
    failure_id: Id,
    stands: Annotated[str, Query(max_length=40)] = "",
) -> EventSourceResponse:
    """Sends `automation` with {"stands": digest} when the automation state of a failure differs from `stands`.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
        TooManyRequests: too many pages receive updates already.
    """
    row = (await to_thread.run_sync(views.failure, services, failure_id)).row

    def now() -> str:
        return automation_views.failure_automation(services, failure_id, row.cluster, row.job_id).state_digest

    return _answer(request, services, principal, automation_events(now, stands))


def _newest(request: Request, services: Services) -> NewestFailure:
    """The state shared by all listeners."""
    state = request.app.state
    if not hasattr(state, "newest"):
        state.newest = NewestFailure(services.store)
    return cast("NewestFailure", state.newest)


def _answer(
    request: Request, services: Services, principal: Principal, events: AsyncIterator[ServerSentEvent | None]
) -> LiveUpdates:
    """The events as an answer that counts until it ends.

    Raises:
        TooManyRequests: too many pages receive updates already.
    """
    services.live_updates.begin(principal.sender)
    allowed = partial(_may_receive, request, services, principal)
    return LiveUpdates(_while_allowed(events, allowed), partial(services.live_updates.end, principal.sender))


def _may_receive(request: Request, services: Services, principal: Principal) -> bool:
    """Whether the caller still has the login, the rights and the view with which it began to listen."""
    try:
        found = identify(request, services, bearer_of(request))
    except (Unauthorized, Forbidden):
        return False
    return (found.scopes, found.visible) == (principal.scopes, principal.visible)


async def _while_allowed(
    events: AsyncIterator[ServerSentEvent | None], allowed: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    """The events of at most 15 minutes; they end when the caller may not receive them, or the database is away."""
    checked = time.monotonic()
    until = checked + MAX_DURATION_S
    try:
        async for event in events:
            if time.monotonic() - checked >= RECHECK_S:
                if not await to_thread.run_sync(allowed):
                    return
                checked = time.monotonic()
            if event is not None:
                yield event
            elif time.monotonic() >= until:
                return
            else:
                await sleep(INTERVAL_S)
    except Unavailable:
        return


async def automation_events(now: Callable[[], str], seen: str) -> AsyncIterator[ServerSentEvent | None]:
    """An event whenever the result of `now` changes, and None after each look."""
    while True:
        found = await to_thread.run_sync(now)
        if found != seen:
            seen = found
            yield ServerSentEvent(orjson.dumps({"stands": seen}).decode(), event="automation")
        yield None


async def failure_events(
    newest: NewestFailure, after: int, filters: FailureFilter, incident: int | None
) -> AsyncIterator[ServerSentEvent | None]:
    """Events about new failures that match the filters and about new incidents, and None after each look."""
    last, known = after, incident
    while True:
        number = await to_thread.run_sync(newest.now)
        opened = newest.incident
        if opened is not None and known is not None and opened.id > known:
            shown = {"id": opened.id, "title": opened.title or opened.value, "jobs": opened.jobs}
            yield ServerSentEvent(orjson.dumps(shown).decode(), event="incident")
        first, known = known is None, max(known or 0, opened.id if opened else 0)
        if number > last:
            last = number
            count = await to_thread.run_sync(newest.since, after, filters)
            yield ServerSentEvent(orjson.dumps({"new": count, "newest": number}).decode(), event="failures")
        if first:
            yield ServerSentEvent(orjson.dumps({"id": known}).decode(), event="open_incident")
        yield None
