"""The hook's loop: what an earlier life left unfinished first, then one request after another.

One request is leased at a time, so that it is acted on within moments of the service's yes: whoever stops automatic
action stops the hooks too.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from service.clock import Clock
from service.hooks.client import LeaseGone, Service, ServiceAway, ServiceRefused
from service.hooks.intent import Intent, Journal
from service.hooks.leased import Unreadable, as_item, read_request
from service.hooks.request import Failed, Go, LeaseOver, Request, Scheduler, SchedulerAway, Settled
from service.ingest.backoff import Backoff
from service.ingest.stop import Stop

log = logging.getLogger(__name__)

AWAY_RETRY_S = 30.0
REFUSED_PAUSE_S = 60.0
MOST_A_ROUND = 200


class Pause(Protocol):
    """Waits between rounds."""

    def wait(self, stop: Stop, seconds: float) -> None:
        """Return after so many seconds, when the end is asked for, or when somebody says that there is work."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """How a hook goes about it. Times in seconds; `lease_s` must be more than carrying out one request takes."""

    cluster: str
    poll_s: float = 15.0
    lease_s: int = 120
    dry_run: bool = False


class Runner:
    """One hook: a service, a scheduler, and the memory between them."""

    def __init__(
        self, service: Service, scheduler: Scheduler, journal: Journal, clock: Clock, options: Options
    ) -> None:
        self._service = service
        self._scheduler = scheduler
        self._journal = journal
        self._clock = clock
        self._options = options
        self._told_of: set[str] = set()

    def run(self, stop: Stop, pause: Pause) -> None:
        """Work until the end is asked for."""
        backoff = Backoff(longest=60.0)
        while not stop.is_set():
            try:
                self.round(stop.is_set)
            except ServiceAway as away:
                seconds = backoff.next() if away.retry_after_s is None else away.retry_after_s
                log.warning("%s; trying again in %.0f s", away, seconds)
            except ServiceRefused as error:
                seconds = REFUSED_PAUSE_S
                log.error("%s; trying again in %.0f s", error, seconds)  # noqa: TRY400 - the text says it all
            else:
                backoff.reset()
                seconds = self._options.poll_s
            pause.wait(stop, seconds)

    def round(self, stopped: Callable[[], bool] = bool) -> int:
        """Finish what is unfinished, then take requests until there is none; how many were taken.

        Raises:
            ServiceAway, ServiceRefused: the rest of the round was left out; nothing is lost.
        """
        try:
            self._scheduler.tend()
        except SchedulerAway as error:
            log.warning("%s", error)
        self.recover()
        self._journal.prune()
        taken = 0
        while taken < MOST_A_ROUND and not stopped():
            found = self._service.lease(1, self._options.lease_s)
            for request in found:
                self.work(request)
            taken += len(found)
            if not found or (self._options.dry_run and all(one.request_id in self._told_of for one in found)):
                break
        return taken

    def recover(self) -> None:
        """Bring what an earlier life, or an earlier round, left unfinished to its end as far as that is possible now."""
        raise NotImplementedError

    def work(self, request: Request) -> None:
        """Carry out one leased request."""
        raise NotImplementedError
