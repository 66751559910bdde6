"""Server-sent events: how many failures have come (GET /live), what becomes of one (GET /failures/{id}/live)."""

import time
from collections.abc import AsyncIterator, Callable
from threading import Lock
from typing import Annotated, cast

import orjson
from anyio import sleep, to_thread
from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from service.db.session import Store
from service.errors import Unavailable
from service.failures.records import FailureFilter
from service.web import automation_views, views
from service.web.auth import OWN, READ
from service.web.pages.failure.page import Id
from service.web.services import Given, Services

router = APIRouter()
EVERY_S = 2.0
PING_S = 15
MOST_LISTENING = 200
LASTS_S = 900.0  # then the browser asks again, and whether it may is looked at anew
_COUNTED = 500


class Newest:
    """The newest failure's number, asked of the database once for all who listen, every two seconds at most."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._asked = float("-inf")
        self._newest = 0
        self.listening = 0

    def now(self) -> int:
        """The number."""
        with self._lock:
            if time.monotonic() - self._asked >= EVERY_S / 2:
                with self._store.reading() as reading:
                    self._newest = reading.failures.newest()
                self._asked = time.monotonic()
            return self._newest

    def since(self, number: int) -> int:
        """How many of the newest failures came after one; 500 at most are counted."""
        with self._store.reading() as reading:
            rows = reading.failures.page(FailureFilter(), limit=_COUNTED).items
        return sum(row.id > number for row in rows)


@router.get("/live", dependencies=[READ])
async def live(
    request: Request, services: Given, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0
) -> EventSourceResponse:
    """Says `failures` with {"new": how many} whenever more have come after failure `after`.

    Raises:
        Unavailable: too many listen already.
    """
    newest = _newest(request, services)
    return _answer(told(newest, after))


@router.get("/failures/{failure_id}/live", dependencies=[OWN])
async def live_of_failure(
    request: Request, services: Given, failure_id: Id, stands: Annotated[str, Query(max_length=40)] = ""
) -> EventSourceResponse:
    """Says `automation` with {"stands": name} whenever what automation does about a failure is not `stands` any more.

    Raises:
        NotFound: no such failure, or not one that they may see.
        Unavailable: too many listen already.
    """
    newest = _newest(request, services)
    row = (await to_thread.run_sync(views.failure, services, failure_id)).row

    def now() -> str:
        return automation_views.of_failure(services, failure_id, row.cluster, row.job_id).stands

    return _answer(changed(newest, now, stands))


def _newest(request: Request, services: Services) -> Newest:
    """What all who listen share.

    Raises:
        Unavailable: too many do.
    """
    state = request.app.state
    if not hasattr(state, "newest"):
        state.newest = Newest(services.store)
    newest = cast("Newest", state.newest)
    if newest.listening >= MOST_LISTENING:
        raise Unavailable("too many pages are live already; this one is shown as it is")
    return newest


def _answer(events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
    return EventSourceResponse(events, ping=PING_S, headers={"X-Accel-Buffering": "no"})


async def changed(newest: Newest, now: Callable[[], str], seen: str) -> AsyncIterator[ServerSentEvent]:
    """An event each time `now` is not what was seen last; ends as `told` does."""
    newest.listening += 1
    until = time.monotonic() + LASTS_S
    try:
        while time.monotonic() < until:
            found = await to_thread.run_sync(now)
            if found != seen:
                seen = found
                yield ServerSentEvent(orjson.dumps({"stands": seen}).decode(), event="automation")
            await sleep(EVERY_S)
    except Unavailable:
        return
    finally:
        newest.listening -= 1


async def told(newest: Newest, after: int) -> AsyncIterator[ServerSentEvent]:
    """The events; ends by itself after a quarter of an hour, or when the database goes away."""
    newest.listening += 1
    last, until = after, time.monotonic() + LASTS_S
    try:
        while time.monotonic() < until:
            number = await to_thread.run_sync(newest.now)
            if number > last:
                last = number
                count = await to_thread.run_sync(newest.since, after)
                yield ServerSentEvent(orjson.dumps({"new": count, "newest": number}).decode(), event="failures")
            await sleep(EVERY_S)
    except Unavailable:
        return
    finally:
        newest.listening -= 1
