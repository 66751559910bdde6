"""Resends dead letters: their stored text is parsed again and handled as an event or a node event."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.dead_letters.records import StoredDeadLetter
from service.errors import Conflict, UnreadableRecord
from service.formats import node_events, recognise
from service.formats.field_reading import Skipped
from service.messaging import batching
from service.web.event_intake import NODE_PLACE
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class Resent:
    """Result of resending a dead letter."""

    id: int
    outcome: str
    event_id: str | None = None
    failure_id: int | None = None
    skipped: str | None = None


def resend(services: Services, letter_id: int, actor: str, *, cluster: str | None = None) -> Resent:
    """Parse the stored text of a dead letter again and handle it as an event.

    Args:
        services: the services of the application.
        letter_id: id of the dead letter.
        actor: who resends it.
        cluster: the cluster of a record that names none; default: that of the topic it came from.

    Raises:
        NotFound: no such letter.
        Conflict: the stored text (redacted and truncated) still cannot be read; nothing changed.
        Unavailable: the database does not answer.
    """
    with services.reading() as reading:
        letter = reading.dead_letters.get(letter_id)
    handle = _handle_node_event if _of_node(services, letter.place) else _handle_event
    try:
        resent = handle(services, letter_id, letter, cluster)
    except UnreadableRecord as error:
        raise Conflict(
            f"the stored text of this dead letter still cannot be read: {error.reason}. Only redacted text is stored; "
            "send the original record again from its source",
            error.errors,
        ) from None
    with services.store.unit_of_work() as work:
        work.dead_letters.mark_resent(letter_id)
        after = {"outcome": resent.outcome, "event_id": resent.event_id}
        work.audit_log.append(actor, "dead_letter.resent", f"dead-letter/{letter_id}", after=after)
    return resent


def _handle_event(services: Services, letter_id: int, letter: StoredDeadLetter, cluster: str | None) -> Resent:
    topic = _topic(letter.place)
    named = cluster or _cluster_of(services.topics, topic)
    source = "resent" if topic is None else f"topic/{topic}"
    found = batching.read(recognise.parse, letter.text.encode(), cluster=named, source=source)
    if isinstance(found, UnreadableRecord):
        raise found
    if isinstance(found, Skipped):
        return Resent(letter_id, "skipped", skipped=found.reason)
    [event] = services.ingest([found]).events
    return Resent(letter_id, event.kind, event.event_id, event.failure_id)


def _handle_node_event(services: Services, letter_id: int, letter: StoredDeadLetter, cluster: str | None) -> Resent:
    named = cluster or _cluster_of(services.node_event_topics, _topic(letter.place))
    found = batching.read(node_events.parse, letter.text.encode(), cluster=named, source="resent")
    if isinstance(found, UnreadableRecord):
        raise found
    if isinstance(found, Skipped):
        return Resent(letter_id, "skipped", skipped=found.reason)
    taken = services.node_event_intake.take(found.events, places=found.places)
    return Resent(letter_id, "accepted" if taken.accepted else "duplicate")


def _of_node(services: Services, place: str) -> bool:
    """Whether a dead letter came from the intake of node events."""
    return place.startswith(NODE_PLACE) or _topic(place) in services.node_event_topics


def _cluster_of(topics: Mapping[str, str], topic: str | None) -> str | None:
    """The cluster of the records of a topic: its name if it is no longer in the settings."""
    return None if topic is None else topics.get(topic, topic)


def _topic(place: str) -> str | None:
    """The topic of a place such as "topic/partition/offset"; None for other places."""
    parts = place.rsplit("/", 2)
    return parts[0] if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit() else None  # noqa: PLR2004 - the three parts
