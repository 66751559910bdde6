"""Reassesses failures with evidence that arrived after the verdict."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from classifiers.contracts import Verdict
from classifiers.fleet_evidence.verdict_update import log_only, update_verdict
from service.clock import Clock
from service.contracts.verdict import stored_verdict
from service.db.session import Store
from service.errors import Unavailable
from service.failures.revised_verdict import differs
from service.nodes.failure_evidence import FailedAttempt, read
from service.nodes.records import JudgedFailure
from service.times import bounded

log = logging.getLogger(__name__)

REASSESSED_AT_LAST = timedelta(minutes=40)  # after the end of a job: related jobs fail meanwhile


@dataclass(frozen=True, slots=True)
class ReassessedFailure:
    """A failure with a changed verdict.

    `version` is the version that was reassessed; `reserved_until` is the end of the reservation for it.
    """

    failure_id: int
    version: int
    event_id: str
    verdict: Verdict
    reserved_until: datetime


class Reassessment:
    """Reassesses failures; the caller stores the result, advises and announces it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def due(self, limit: int = 100) -> list[ReassessedFailure]:
        """Failures whose verdict changes, of at most `limit` reassessed ones.

        Unchanged failures are finished, as are those that cannot be reassessed. Changed ones are reassessed again in
        two minutes unless `done` is called.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._store.reading() as reading:
            if not reading.node_work.any_due():
                return []
        with self._store.unit_of_work() as work:
            reserved = work.node_work.due(limit)
        return self._of_reserved(reserved)

    def _of_reserved(self, reserved: Mapping[int, datetime]) -> list[ReassessedFailure]:
        """The changed ones of these failures; if reassessing them together fails, each is reassessed alone."""
        try:
            changed, judged = self._reassess(reserved)
        except Unavailable:
            raise
        except Exception:
            if len(reserved) > 1:
                return [one for number, until in reserved.items() for one in self._of_reserved({number: until})]
            log.exception("failure %d cannot be reassessed", *reserved)
            self._finish(reserved, {})
            return []
        changed_ids = {one.failure_id for one in changed}
        self._finish({number: until for number, until in reserved.items() if number not in changed_ids}, judged)
        return changed

    def _reassess(
        self, reserved: Mapping[int, datetime]
    ) -> tuple[list[ReassessedFailure], Mapping[int, JudgedFailure]]:
        """The changed ones of these failures, and what is stored of all."""
        with self._store.reading() as reading:
            judged = {one.id: one for one in reading.failure_facts.judged(list(reserved)) if one.source == "machine"}
            bodies = reading.failure_facts.bodies(judged)
            before = {number: stored_verdict(body) for number, body in bodies.items()}
            attempts = [_around(judged[number], verdict) for number, verdict in before.items()]
            evidence = read(reading, attempts)
        changed = []
        for (number, verdict), known in zip(before.items(), evidence, strict=True):
            now = update_verdict(verdict, known)
            if _is_news(verdict, now):
                event_id = str(bodies[number]["event_id"])
                changed.append(
                    ReassessedFailure(number, judged[number].version, event_id, now, reserved_until=reserved[number])
                )
        return changed, judged

    def done(self, failures: Collection[ReassessedFailure]) -> None:
        """Finish failures whose new verdicts are stored or cannot be.

        Raises:
            Unavailable: the database does not answer; they are reassessed again, which changes nothing.
        """
        with self._store.reading() as reading:
            judged = {one.id: one for one in reading.failure_facts.judged([one.failure_id for one in failures])}
        self._finish({one.failure_id: one.reserved_until for one in failures}, judged)

    def _finish(self, reserved: Mapping[int, datetime], judged: Mapping[int, JudgedFailure]) -> None:
        """Recent failures are reassessed once more, because related jobs may still fail."""
        if not reserved:
            return
        now = self._clock.now()
        once_more = {
            number: bounded(judged[number].ended_at) + REASSESSED_AT_LAST
            for number in reserved
            if number in judged and abs(now - bounded(judged[number].ended_at)) < REASSESSED_AT_LAST
        }
        with self._store.unit_of_work() as work:
            work.node_work.checked(reserved)
            work.node_work.recheck(once_more)


def _around(one: JudgedFailure, verdict: Verdict) -> FailedAttempt:
    return FailedAttempt(one.cluster, one.job_id, one.nodes, one.user, bounded(one.ended_at), log_only(verdict))


def _is_news(before: Verdict, now: Verdict) -> bool:
    """Whether it says something else, or evidence of the fleet disputes it or suspects another place."""
    return differs(before, now) or (before.disputed, before.suspect) != (now.disputed, now.suspect)
