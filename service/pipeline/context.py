"""Updates new verdicts with the fleet evidence: one read for a whole batch."""

from collections.abc import Sequence

from classifiers.contracts import Verdict
from classifiers.relevance.fleet_evidence import update_verdict
from classifiers.relevance.recent_changes import RecentChange, with_changes
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.nodes.failure_evidence import FailedAttempt, read
from service.nodes.recent_changes import changes_before
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
        changes = changes_before(reading, [(one.cluster, one.nodes, one.ended_at) for one in attempts])
    return [
        with_changes(
            update_verdict(verdict, known),
            [RecentChange(change.node, change.at, change.text) for change in changed],
            known.ended_at,
        )
        for verdict, known, changed in zip(verdicts, evidence, changes, strict=True)
    ]
