"""The hook's main loop: complete unfinished requests first, then lease and execute new ones.

One request is leased at a time and executed at once, so that stopping automation also stops the hooks.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from service.backoff import Backoff
from service.clock import Clock
from service.hooks.action_journal import Intent, Journal
from service.hooks.lease_client import LeaseLost, LeaseService, ServiceRefused, ServiceUnavailable
from service.hooks.lease_parser import InvalidRequest, read_request, request_to_json
from service.hooks.request import Failed, LeaseExpired, Ready, Request, Scheduler, SchedulerUnavailable, Settled
from service.shutdown import ShutdownFlag

log = logging.getLogger(__name__)

AWAY_RETRY_S = 30.0
REFUSED_PAUSE_S = 60.0
LEAST_PAUSE_S = 1.0
MOST_A_ROUND = 200
LONGEST = 2_000  # maximum length of an error text
EARLY = timedelta(seconds=1)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class RoundTimer(Protocol):
    """Waits between rounds."""

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, at shutdown, or on notification of new requests."""
        ...


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """Options of a hook. Times in seconds; `lease_s` must exceed the time to execute one request."""

    cluster: str
    poll_s: float = 15.0
    lease_s: int = 120
    dry_run: bool = False


class HookRunner:
    """One hook: leases requests from the service, executes them at a scheduler, and keeps a journal."""

    def __init__(
        self, service: LeaseService, scheduler: Scheduler, journal: Journal, clock: Clock, options: RunnerOptions
    ) -> None:
        self._service = service
        self._scheduler = scheduler
        self._journal = journal
        self._clock = clock
        self._options = options
        self._leases: dict[str, _LeaseDeadline] = {}  # of requests that this process has begun and not ended
        self._warned: set[str] = set()  # requests that were interrupted and whose lease has expired
        self._shown: set[str] = set()  # requests that a dry run has logged

    def run(self, stop: ShutdownFlag, pause: RoundTimer) -> None:
        """Run until shutdown."""
        backoff = Backoff(longest=60.0)
        while not stop.is_set():
            try:
                self.round(stop.is_set)
            except ServiceUnavailable as away:
                seconds = backoff.next() if away.retry_after_s is None else max(away.retry_after_s, LEAST_PAUSE_S)
                log.warning("%s; trying again in %.0f s", away, seconds)
            except ServiceRefused as error:
                seconds = REFUSED_PAUSE_S
                log.error("%s; trying again in %.0f s", error, seconds)  # noqa: TRY400 - the text says it all
            except OSError as error:
                seconds = REFUSED_PAUSE_S
                log.error("the journal can't be used: %s; trying again in %.0f s", error, seconds)  # noqa: TRY400 - as above
            else:
                backoff.reset()
                seconds = self._options.poll_s
            pause.wait(seconds)

    def round(self, stopped: Callable[[], bool] = bool) -> int:
        """Complete unfinished requests, then lease requests until there are none; return the number leased.

        Raises:
            ServiceUnavailable, ServiceRefused: the rest of the round was skipped; nothing is lost.
        """
        try:
            self._scheduler.maintain()
        except SchedulerUnavailable as error:
            log.warning("%s", error)
        except Exception:
            log.exception("maintenance failed; requests are tried nevertheless")
        self.recover()
        self._journal.prune()
        if self._options.dry_run:
            return self._dry_run()
        taken = 0
        while taken < MOST_A_ROUND and not stopped():
            requested_at = _Instant.of(self._clock)
            found = self._service.lease(1, self._options.lease_s)
            for request in found:
                self.work(request, requested_at)
            taken += len(found)
            if not found:
                break
        return taken

    def recover(self) -> None:
        """Complete requests left unfinished by an earlier run or round, as far as lease and scheduler allow."""
        if self._options.dry_run:
            return
        for intent in self._journal.all():
            if intent.state == "acted":
                self._report(intent)
            elif intent.state == "intended":
                self._finish(intent)

    def work(self, request: Request, requested_at: "_Instant | None" = None) -> None:
        """Execute one leased request, or report its known outcome.

        Args:
            request: the request.
            requested_at: before the lease was asked for; None: now.

        Raises:
            ServiceUnavailable: the outcome could not be reported; the journal keeps it.
            OSError: the journal can't be written.
        """
        self._leases[request.request_id] = _LeaseDeadline(request.good_until, self._clock, requested_at)
        known = self._journal.get(request.request_id)
        if known is not None and known.outcome is not None:
            log.info("%s: reported from the journal", request.request_id)
            self._report(replace(known, lease_token=request.lease_token, state="acted"))
        elif request.cluster != self._options.cluster:
            self._end(request, Settled("refused", f"this hook serves cluster {self._options.cluster}"), None)
        elif not self._scheduler.can_look_up and (known or self._started_elsewhere(request)):
            self._end(
                request, Settled("unknown", "an earlier attempt may have started, and its outcome is not known"), known
            )
        elif request.not_before is not None and request.not_before > self._clock.now() + EARLY:
            wait = (request.not_before - self._clock.now()).total_seconds()
            self._end(request, Failed("its start time has not been reached", wait), known)
        else:
            self._attempt(request, known)

    def _started_elsewhere(self, request: Request) -> bool:
        """Whether another hook, or this one before its journal was lost, may have started the request."""
        return self._journal.is_set_aside(request.request_id) or request.lease_count > 1

    def _attempt(self, request: Request, known: Intent | None) -> None:
        """Inspect, write the intent, execute, write the outcome, report it."""
        begun_at = known.at if known is not None else self._aside_at(request)
        try:
            seen = self._inspect(request, begun_at)
        except SchedulerUnavailable as away:
            if known is None:
                self._end(request, Failed(str(away)[:LONGEST], AWAY_RETRY_S), None)
            log.warning("%s: %s", request.request_id, away)
            return
        if not isinstance(seen, Ready):
            self._end(request, seen, known)
            return
        lease = self._lease(request)
        intent = self._intent(request, begun_at)
        try:
            lease.check()
            self._journal.write(intent)
        except LeaseExpired as error:
            log.warning("%s: %s", request.request_id, error)
            return
        except OSError as error:
            self._end(request, Failed(f"the journal can't be written: {error.strerror}", AWAY_RETRY_S), known)
            return
        log.info("%s: job %s: %s", request.request_id, request.job_id, seen.action_text)
        try:
            outcome = self._scheduler.execute(request, lease)
        except (SchedulerUnavailable, LeaseExpired) as error:
            log.warning("%s: %s; it will be inspected again", request.request_id, error)
            return
        except Exception:
            log.exception("%s: job %s: unexpected; it will be inspected again", request.request_id, request.job_id)
            return
        self._end(request, outcome, intent)

    def _inspect(self, request: Request, begun_at: datetime | None) -> Ready | Settled | Failed:
        """See `Scheduler.inspect`. An unexpected error fails the request: one job must not end the hook for all others.

        Raises:
            SchedulerUnavailable: as `Scheduler.inspect`; also if the request was started, whose outcome matters.
        """
        try:
            return self._scheduler.inspect(request, begun_at=begun_at)
        except SchedulerUnavailable:
            raise
        except Exception as error:
            log.exception("%s: job %s can't be inspected", request.request_id, request.job_id)
            what = f"the job can't be inspected: {type(error).__name__}"
            if begun_at is not None:
                raise SchedulerUnavailable(what) from None
            return Failed(what)

    def _finish(self, intent: Intent) -> None:
        """Complete a started request: under the same lease if it is valid, else report what is known."""
        try:
            request = read_request({**intent.request, "lease_token": intent.lease_token}, intent.good_until)
        except InvalidRequest as error:
            log.error("%s: %s", intent.request_id, error)  # noqa: TRY400 - the text says it all
            return
        if not self._scheduler.can_look_up:
            what = "the hook ended during execution; the request is not repeated automatically"
            self._end(request, Settled("unknown", what), intent)
        elif not self._lease(request).expired:
            self._attempt(request, intent)
        else:
            self._afterwards(request, intent)

    def _lease(self, request: Request) -> "_LeaseDeadline":
        """The lease of a request; of one that an earlier process leased, only its end by the clock is known."""
        lease = self._leases.get(request.request_id)
        return lease if lease is not None else _LeaseDeadline(request.good_until, self._clock)

    def _afterwards(self, request: Request, intent: Intent) -> None:
        """Handle an expired lease: change nothing, but report an outcome that can be found."""
        try:
            seen = self._inspect(request, intent.at)
        except SchedulerUnavailable as away:
            log.warning("%s: %s", request.request_id, away)
            return
        if isinstance(seen, Settled):
            self._end(request, seen, intent)
        elif isinstance(seen, Failed) or not seen.begun:
            self._journal.forget(request.request_id)  # nothing was done: the next lease starts from the beginning
        elif request.request_id not in self._warned:
            self._warned.add(request.request_id)
            log.error(
                "%s: job %s was interrupted (%s), and the lease has expired: waiting for the next lease or an operator",
                request.request_id,
                request.job_id,
                seen.action_text,
            )

    def _end(self, request: Request, outcome: Settled | Failed, known: Intent | None) -> None:
        """Write the outcome to the journal, then report it."""
        intent = known or self._intent(request, None)
        intent = replace(intent, state="acted", outcome=outcome, lease_token=request.lease_token)
        self._journal.write(intent)
        self._warned.discard(request.request_id)
        self._report(intent)

    def _report(self, intent: Intent) -> None:
        outcome = intent.outcome
        try:
            if isinstance(outcome, Settled):
                self._service.ack(intent.request_id, intent.lease_token, outcome)
            elif outcome is not None:
                self._service.fail(intent.request_id, intent.lease_token, outcome.error, outcome.retry_after_s)
        except LeaseLost as gone:
            log.warning("%s: job %s: %s; %s", intent.request_id, intent.job_id, outcome, gone)
        except ServiceRefused as error:  # retried each round; other requests must not wait for it
            log.error("%s: %s could not be reported: %s", intent.request_id, outcome, error)  # noqa: TRY400 - says it all
            return
        else:
            log.info("%s: job %s: %s", intent.request_id, intent.job_id, outcome)
        if isinstance(outcome, Settled):
            self._journal.write(replace(intent, state="reported"))
        else:
            self._journal.forget(intent.request_id)
        self._leases.pop(intent.request_id, None)

    def _intent(self, request: Request, at: datetime | None) -> Intent:
        return Intent(
            request_id=request.request_id,
            kind=self._scheduler.kind,
            cluster=request.cluster,
            job_id=request.job_id,
            lease_token=request.lease_token,
            state="intended",
            at=at or self._clock.now(),
            good_until=request.good_until,
            request=request_to_json(request),
        )

    def _aside_at(self, request: Request) -> datetime | None:
        """Return an early start time for a request whose journal file was set aside: the real one is not known."""
        return LONG_AGO if self._journal.is_set_aside(request.request_id) else None

    def _dry_run(self) -> int:
        """Log what would be done for each waiting request, once."""
        waiting = self._service.waiting(MOST_A_ROUND)
        fresh = [one for one in waiting if one.request_id not in self._shown]
        self._shown = {one.request_id for one in waiting}
        for request in fresh:
            seen: object = Settled("refused", f"this hook serves cluster {self._options.cluster}")
            if request.cluster == self._options.cluster:
                try:
                    seen = self._inspect(request, None)
                except SchedulerUnavailable as away:
                    seen = away
            shown = seen.action_text if isinstance(seen, Ready) else seen
            log.info("dry run: %s: job %s: %s", request.request_id, request.job_id, shown)
        return len(fresh)


@dataclass(frozen=True, slots=True)
class _Instant:
    """One moment by this machine's clock, and by the one that never jumps."""

    at: datetime
    monotonic: float

    @classmethod
    def of(cls, clock: Clock) -> "_Instant":
        return cls(clock.now(), clock.monotonic())


class _LeaseDeadline:
    """The end of a lease by this machine's clock, and by the time that passed: a clock that is set back ends none."""

    def __init__(self, good_until: datetime, clock: Clock, requested_at: _Instant | None = None) -> None:
        requested_at = requested_at or _Instant.of(clock)
        self._good_until = good_until
        self._ends = requested_at.monotonic + (good_until - requested_at.at).total_seconds()
        self._clock = clock

    @property
    def expired(self) -> bool:
        """Whether the lease has ended."""
        return self._left_s() <= 0

    def check(self, takes_s: float = 0.0) -> None:
        """See `service.hooks.request.Lease`."""
        left_s = self._left_s()
        if left_s <= 0:
            raise LeaseExpired("the lease has expired")
        if left_s < takes_s:
            raise LeaseExpired(f"the lease has {left_s:.0f} s left, and the next step may take {takes_s:g} s")

    def _left_s(self) -> float:
        by_clock = (self._good_until - self._clock.now()).total_seconds()
        return min(by_clock, self._ends - self._clock.monotonic())
