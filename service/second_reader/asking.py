"""Asks the second reader about doubtful failures, away from the pipeline: once for each kind, at most so many an hour.

The answer is stored apart from the verdict and shown on the page of the failure. It changes no verdict and no advice:
nothing that decides on actions reads it.
"""

import logging
import secrets
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from service.backoff import pause_after
from service.clock import Clock
from service.contracts.event import JobCompletion
from service.contracts.verdict import stored_verdict
from service.db.session import Store
from service.errors import NotFound
from service.second_reader.opinion import NoReply, Reply, SecondReader
from service.second_reader.question import Question, question
from service.second_reader.repository import Candidate, SecondReading, SecondReadingReader, Status
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

EVERY_S: Final = 30.0
TASK: Final = "second reader"
LEASE: Final = timedelta(minutes=15)
LAST_QUESTION: Final = LEASE / 2  # into a turn; an answer takes 5 minutes at most
HOUR: Final = timedelta(hours=1)
NO_LONGER_WAITING: Final = timedelta(days=1)
PER_TURN: Final = 5
_VERDICTS_PER_TURN: Final = 500
_MOST_DISPUTED: Final = 200


class SecondReadings:
    """Called periodically, in any number of processes: a lease lets one at a time ask."""

    def __init__(
        self, store: Store, clock: Clock, telemetry: Telemetry, reader: SecondReader, *, hourly_limit: int
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._reader = reader
        self._hourly_limit = hourly_limit
        self._breaker = CircuitBreaker(clock)
        self._holder = f"second-reader-{secrets.token_hex(6)}"
        self._seen_until = clock.now()
        # Disputed verdicts have no column to find them by: the newest verdicts are read once.
        self._disputed: deque[Candidate] = deque(maxlen=_MOST_DISPUTED)
        # Questions of the last hour that this process got no answer to: when, and about which kind.
        self._unanswered: deque[tuple[float, str]] = deque()

    def __call__(self) -> int:
        """Ask about the failures that wait; returns the number of questions with an answer.

        Raises:
            Unavailable: the database does not answer.
        """
        self._find_disputed()
        if not self._breaker.allows():
            self._telemetry.second_reader_requests.labels("circuit_open").inc()
            return 0
        turn = f"{self._clock.now():%Y-%m-%dT%H:%M:%S.%f}"
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(TASK, self._holder, due=turn, lease=LEASE):
                return 0
            work.second_readings.release_before(self._clock.now() - LEASE)
        try:
            return self._ask_waiting()
        finally:
            with self._store.unit_of_work() as work:
                work.task_leases.done(TASK, self._holder, due=turn)

    def _ask_waiting(self) -> int:
        answered = 0
        end = self._clock.monotonic() + LAST_QUESTION.total_seconds()
        for _ in range(PER_TURN):
            may_ask = self._breaker.allows() and self._clock.monotonic() < end
            candidate = self._next() if may_ask else None
            if candidate is None or not self._ask(candidate):
                break
            answered += 1
        return answered

    def _find_disputed(self) -> None:
        with self._store.reading() as reading:
            recent = reading.second_readings.recent_verdicts(self._seen_until, _VERDICTS_PER_TURN)
        for one in recent:
            self._seen_until = one.at
            if one.body.get("disputed") and one.body.get("fingerprint"):
                self._disputed.append(Candidate(one.failure_id, str(one.body["fingerprint"])))

    def _next(self) -> Candidate | None:
        """Reserve the next kind to ask about; None if none waits or the limit of the hour is reached."""
        now = self._clock.now()
        while self._unanswered and self._unanswered[0][0] <= self._clock.monotonic() - HOUR.total_seconds():
            self._unanswered.popleft()
        with self._store.unit_of_work() as work:
            if work.second_readings.count_since(now - HOUR) + len(self._unanswered) >= self._hourly_limit:
                self._telemetry.second_reader_requests.labels("hourly_limit").inc()
                return None
            for candidate in self._candidates(work.second_readings, now - NO_LONGER_WAITING):
                if work.second_readings.reserve(candidate, now):
                    return candidate
                if candidate in self._disputed:
                    self._disputed.remove(candidate)  # it was asked about
        return None

    def _candidates(self, readings: SecondReadingReader, since: datetime) -> Iterator[Candidate]:
        """The kinds that wait, in order. One that the reader gives no answer to comes after all the others."""
        silent = {kind for _, kind in self._unanswered}
        yield from [one for one in self._disputed if one.fingerprint not in silent]
        yield from readings.waiting(since, 1, without=silent)
        yield from [one for one in self._disputed if one.fingerprint in silent]
        yield from readings.waiting(since, 1)

    def _ask(self, candidate: Candidate) -> bool:
        question = self._question(candidate)
        if question is None:
            self._store_reply(candidate, Reply(None, "", "no verdict or event is stored"))
            return False
        began = self._clock.monotonic()
        try:
            reply = self._reader.ask(question)
        except NoReply as error:
            self._breaker.failed()
            self._telemetry.second_reader_requests.labels("no_answer").inc()
            log.warning("the second reader did not answer: %s", error)
            self._unanswered.append((self._clock.monotonic(), candidate.fingerprint))
            with self._store.unit_of_work() as work:
                work.second_readings.release(candidate.fingerprint)
            return False
        finally:
            self._telemetry.second_reader_seconds.observe(self._clock.monotonic() - began)
        self._breaker.succeeded()
        self._store_reply(candidate, reply)
        return True

    def _question(self, candidate: Candidate) -> Question | None:
        try:
            with self._store.reading() as reading:
                detail = reading.failures.get(candidate.failure_id)
        except NotFound:
            return None
        if detail.verdict is None or not detail.logs:
            return None
        try:
            verdict = stored_verdict(detail.verdict)
            job = JobCompletion.model_validate(detail.logs[-1].event).facts()
        except ValidationError:  # of an earlier release
            return None
        return question(verdict, job)

    def _store_reply(self, candidate: Candidate, reply: Reply) -> None:
        opinion = reply.opinion
        status = _status(reply)
        self._telemetry.second_reader_requests.labels(status).inc()
        self._telemetry.second_reader_tokens.labels("prompt").inc(reply.prompt_tokens)
        self._telemetry.second_reader_tokens.labels("completion").inc(reply.completion_tokens)
        if reply.problem is not None:
            log.warning(
                "the second reader's answer for failure %d is unusable: %s", candidate.failure_id, reply.problem
            )
        with self._store.unit_of_work() as work:
            work.second_readings.store(
                SecondReading(
                    fingerprint=candidate.fingerprint,
                    failure_id=candidate.failure_id,
                    asked_at=self._clock.now(),
                    status=status,
                    model=reply.model,
                    side=None if opinion is None else opinion.side,
                    cause=None if opinion is None else opinion.cause,
                    confidence=None if opinion is None else opinion.confidence,
                    reason=None if opinion is None else opinion.reason,
                    prompt_tokens=reply.prompt_tokens,
                    completion_tokens=reply.completion_tokens,
                )
            )


def _status(reply: Reply) -> Status:
    if reply.opinion is None:
        return "invalid"
    return "undecided" if reply.opinion.side is None else "answered"


FAILURES: Final = 3
FIRST_PAUSE_S: Final = 60.0
LONGEST_PAUSE_S: Final = 3600.0


class CircuitBreaker:
    """Opens after three failures in a row; each further failure doubles the pause, up to an hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._closed_again_at = 0.0

    def allows(self) -> bool:
        """Whether a request may be sent now."""
        return self._failures < FAILURES or self._clock.monotonic() >= self._closed_again_at

    def succeeded(self) -> None:
        """Record an answer: the circuit is closed."""
        self._failures = 0

    def failed(self) -> None:
        """Record a request without an answer."""
        self._failures += 1
        pause = pause_after(self._failures - FAILURES + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._closed_again_at = self._clock.monotonic() + pause
