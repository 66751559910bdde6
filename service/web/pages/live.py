"""GET /live: server-sent events that say how many failures have come; pages then offer to show them."""

import time
from collections.abc import AsyncIterator
from threading import Lock
from typing import Annotated, cast

import orjson
from anyio import sleep, to_thread
from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from service.errors import Unavailable
from service.store.records import FailureFilter
from service.store.session import Store
from service.web.auth import READ
from service.web.services import Given

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
    state = request.app.state
    if not hasattr(state, "newest"):
        state.newest = Newest(services.store)
    newest = cast("Newest", state.newest)
    if newest.listening >= MOST_LISTENING:
        raise Unavailable("too many pages are live already; this one is shown as it is")
    return EventSourceResponse(told(newest, after), ping=PING_S, headers={"X-Accel-Buffering": "no"})


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
