"""Node events that cause other events: a cause counts by what supports its effect, and comes before it.

The log of a job often shows the last effect only. A certificate of a node expires, a controller declares the node lost
and removes its pods, and the log shows that a peer went away: of the events, only the last fits the log.
"""

from collections.abc import Sequence
from typing import Final

from classifiers.relevance.event_candidates import Candidate, JobEvidence, Reason
from classifiers.relevance.event_exclusion import EventsOfNode, exclusion_of
from classifiers.relevance.event_places import names_other_node
from classifiers.relevance.event_rules import leads_to, shown_until_repair
from classifiers.relevance.event_times import comes_before

# The reasons by which an event is set aside because log and scheduler do not support it. They may support its effect.
_UNSUPPORTED: Final = frozenset(
    {Reason.NOT_SHOWN, Reason.NO_TRACE, Reason.LONG_BEFORE, Reason.SURVIVED, Reason.LATER, Reason.OTHER_NODE}
)
# Judgement: a service's failure shows its effects on nodes within an hour. A change may show them days later.
_SHARED_WITHIN_S: Final = 3_600.0


def effects_of(one: Candidate, used: Sequence[Candidate]) -> list[Candidate]:
    """The used events that an event caused: of its node or of its service's users, and not long after it."""
    caused = leads_to(one.event.entries)
    if not caused:
        return []
    return [
        other
        for other in used
        if other is not one and not caused.isdisjoint(other.event.entries) and _leads(one, other)
    ]


def is_supported_by_effects(
    one: Candidate, effects: Sequence[Candidate], events_of_node: EventsOfNode, job: JobEvidence
) -> bool:
    """Whether the effects of an event that was set aside support it, and nothing else is against it."""
    if one.reason not in _UNSUPPORTED:
        return False
    reason = exclusion_of(one, events_of_node, job) or events_of_node.reason(one)
    if reason is Reason.OTHER_NODE:  # the node of a pod that never started is in no log
        on_its_node = one.event.node is not None and any(one.event.node == other.event.node for other in effects)
        return on_its_node and not names_other_node(one, job)
    return reason is None or reason in _UNSUPPORTED


def _leads(one: Candidate, other: Candidate) -> bool:
    is_shared = "service" in one.traits.objects or one.event.node is None
    if not (is_shared or one.event.node == other.event.node) or not comes_before(one.event, other.event):
        return False
    if one.event.time is None or other.event.time is None:
        return True
    if not shown_until_repair(one.event.entries).isdisjoint(other.event.entries):
        return True
    return other.event.time - one.event.time <= (one.traits.within_s or _SHARED_WITHIN_S)
