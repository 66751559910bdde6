"""Updates new verdicts with the fleet evidence: one read for a whole batch."""

from collections.abc import Sequence

from classifiers.contracts import Verdict
from classifiers.relevance.fleet_evidence import update_verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.nodes.failure_evidence import FailedAttempt, read
from service.nodes.safe_times import bounded


def in_context(store: Store, events: Sequence[JobCompletion], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdict of each event, updated with the fleet evidence, in order.

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
    return [update_verdict(verdict, known) for verdict, known in zip(verdicts, evidence, strict=True)]
