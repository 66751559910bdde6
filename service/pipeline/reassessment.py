"""Reassesses failures with evidence that arrived after the verdict."""

from collections.abc import Collection
from dataclasses import dataclass

from classifiers.contracts import Verdict
from classifiers.relevance.fleet_evidence import log_only, update_verdict
from service.clock import Clock
from service.contracts.verdict import stored_verdict
from service.db.session import Store
from service.nodes.failure_evidence import FailedAttempt, read
from service.nodes.records import JudgedFailure
from service.nodes.settings import FleetSettings
from service.times import bounded

LEAST_CHANGE = 0.05  # smaller changes of the confidence are ignored


@dataclass(frozen=True, slots=True)
class ReassessedFailure:
    """A failure with a changed verdict; `version` is the version that was reassessed."""

    failure_id: int
    version: int
    event_id: str
    verdict: Verdict


class Reassessment:
    """Reassesses failures; the caller stores the result, advises and announces it."""

    def __init__(self, store: Store, clock: Clock, settings: FleetSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    def due(self, limit: int = 100) -> list[ReassessedFailure]:
        """Failures whose verdict changes, of at most `limit` reassessed ones.

        Unchanged failures are finished. Changed ones are reassessed again in two minutes unless `done` is called.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._store.reading() as reading:
            if not reading.node_work.any_due():
                return []
        with self._store.unit_of_work() as work:
            ids = work.node_work.due(limit)
        with self._store.reading() as reading:
            judged = {one.id: one for one in reading.failure_facts.judged(ids) if one.source == "machine"}
            bodies = reading.failure_facts.bodies(judged)
            before = {number: stored_verdict(body) for number, body in bodies.items()}
            attempts = [_around(judged[number], verdict) for number, verdict in before.items()]
            evidence = read(reading, attempts)
        changed = []
        for (number, verdict), known in zip(before.items(), evidence, strict=True):
            now = update_verdict(verdict, known)
            if _is_news(verdict, now):
                changed.append(ReassessedFailure(number, judged[number].version, str(bodies[number]["event_id"]), now))
        changed_ids = {one.failure_id for one in changed}
        self._finish([number for number in ids if number not in changed_ids], judged)
        return changed

    def done(self, failures: Collection[int]) -> None:
        """Finish failures whose new verdicts are stored.

        Raises:
            Unavailable: the database does not answer; they are reassessed again, which changes nothing.
        """
        with self._store.reading() as reading:
            judged = {one.id: one for one in reading.failure_facts.judged(failures)}
        self._finish(failures, judged)

    def _finish(self, failures: Collection[int], judged: dict[int, JudgedFailure]) -> None:
        """Recent failures are reassessed once more, because related jobs may still fail."""
        if not failures:
            return
        now = self._clock.now()
        once_more = {
            number: bounded(judged[number].ended_at) + self._settings.last
            for number in failures
            if number in judged and abs(now - bounded(judged[number].ended_at)) < self._settings.last
        }
        with self._store.unit_of_work() as work:
            work.node_work.checked(failures)
            work.node_work.recheck(once_more)


def _around(one: JudgedFailure, verdict: Verdict) -> FailedAttempt:
    return FailedAttempt(one.cluster, one.job_id, one.nodes, one.user, bounded(one.ended_at), log_only(verdict))


def _is_news(before: Verdict, now: Verdict) -> bool:
    return (
        (before.side, before.cause, before.abstained, before.disputed, before.retry_outlook, before.suspect)
        != (now.side, now.cause, now.abstained, now.disputed, now.retry_outlook, now.suspect)
    ) or abs(before.confidence - now.confidence) >= LEAST_CHANGE
