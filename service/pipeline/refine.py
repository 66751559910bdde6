"""Refines fingerprints according to the splits of groups, before a verdict is used."""

from collections.abc import Sequence
from dataclasses import replace

from classifiers.contracts import Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.groups.repository.groups import refined

_MOST_TIMES = 4  # a split kind may be split again


def refine(store: Store, events: Sequence[JobCompletion], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdict of each event with the refined fingerprint of its group.

    Raises:
        Unavailable: the database does not answer.
    """
    prints = [verdict.fingerprint for verdict in verdicts]
    for _ in range(_MOST_TIMES):
        with store.reading() as reading:
            splits = reading.groups.splits(set(prints))
        if not splits:
            break
        prints = [
            refined(
                fingerprint,
                {
                    "cluster": event.cluster,
                    "queue": event.queue,
                    "team": event.team,
                    "user": event.user,
                    "node": verdict.suspect.node if verdict.suspect is not None else None,
                },
                splits,
            )
            for fingerprint, event, verdict in zip(prints, events, verdicts, strict=True)
        ]
    return [
        verdict if verdict.fingerprint == fingerprint else replace(verdict, fingerprint=fingerprint)
        for verdict, fingerprint in zip(verdicts, prints, strict=True)
    ]
