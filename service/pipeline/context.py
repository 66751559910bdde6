"""Updates new verdicts with the fleet evidence: one read for a whole batch."""

from collections.abc import Sequence

from classifiers.contracts import Verdict
from classifiers.relevance.fleet_evidence import update_verdict
from classifiers.relevance.recent_changes import with_changes
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.nodes.failure_evidence import FailedAttempt, read
from service.pipeline.classification import KnownBefore
from service.times import bounded


def in_context(
    store: Store, events: Sequence[JobCompletion], verdicts: Sequence[Verdict], before: Sequence[KnownBefore]
) -> list[Verdict]:
    """The verdict of each event, updated with the fleet evidence and the changes before it, in order.

    Args:
        store: the database.
        events: the events.
        verdicts: the verdict of each.
        before: what is known of the time before each.

    Raises:
        Unavailable: the database does not answer.
    """
    if not events:
        return list(verdicts)
    attempts = [
        FailedAttempt(event.cluster, event.job_id, event.nodes, event.user, bounded(event.ended_at), verdict)
        for event, verdict in zip(events, verdicts, strict=True)
    ]
    with store.reading() as reading:
        evidence = read(reading, attempts)
    return [
        with_changes(update_verdict(verdict, known), earlier.changes, known.ended_at)
        for verdict, known, earlier in zip(verdicts, evidence, before, strict=True)
    ]
