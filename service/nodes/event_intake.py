"""Stores node events once each, schedules the reassessment of affected failures, and resets repaired nodes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from classifiers.fleet_evidence import evidence_weights
from classifiers.redaction import redact
from service.clock import Clock
from service.contracts.event import CLOCK_TOLERANCE
from service.db.session import Store, UnitOfWork
from service.dead_letters.records import DeadLetter
from service.errors import FieldError, InvalidInput
from service.nodes.counting import DAY, day_of, refresh, start_of
from service.nodes.records import DaySums, FleetSettings, KnownPlace, NewNodeEvent, NodePlace, NodeReport, Window
from service.times import bounded

MAX_AGE = timedelta(days=30)  # older events do not revise verdicts
NOTE_MOST = 500  # characters


@dataclass(frozen=True, slots=True)
class StoredEvents:
    """How many of the events were new, and how many were known; a place counts as an event of its node."""

    accepted: int = 0
    duplicates: int = 0


class NodeEventIntake:
    """Stores node events."""

    def __init__(self, store: Store, clock: Clock, settings: FleetSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    def handle(self, reports: Sequence[NodeReport], dead: Sequence[DeadLetter] = ()) -> StoredEvents:
        """Store a batch of a topic; see `take`."""
        events = [one for report in reports for one in report.events]
        return self.take(events, dead, places=(one for report in reports for one in report.places))

    def take(
        self,
        events: Sequence[NewNodeEvent],
        dead: Sequence[DeadLetter] = (),
        *,
        places: Iterable[KnownPlace] = (),
    ) -> StoredEvents:
        """Store events in one transaction; returns after the commit. Storing them twice changes nothing.

        Places are stored for nodes on which a job has ended; what a report does not name stays as it is.

        Raises:
            Unavailable: the database does not answer; nothing was stored, the call may be repeated.
        """
        with self._store.unit_of_work() as work:
            new = work.node_events.add(events)
            fresh = [one for one, is_new in zip(events, new, strict=True) if is_new]
            for one in fresh:
                if one.kind == "repaired":
                    at = min(bounded(one.at), self._clock.now())
                    note_repair(
                        work,
                        one.cluster,
                        one.node,
                        at=at,
                        actor=one.source,
                        note=one.text,
                        now=self._clock.now(),
                        settings=self._settings,
                    )
            self._schedule_reassessment(work, fresh)
            named = _by_node(places)
            moved = 0
            if named:
                work.node_work.counting()
                moved = work.suspicion.set_places(named, keep_others=True)
            if dead:
                work.dead_letters.add(dead)
        return StoredEvents(len(fresh) + moved, len(events) - len(fresh) + len(named) - moved)

    def repaired(self, cluster: str, node: str, *, actor: str, note: str | None, at: datetime | None = None) -> bool:
        """Record that a node was repaired: its suspicion starts again from zero.

        Returns:
            False if a later repair is known.

        Raises:
            NotFound: the node is unknown.
            InvalidInput: a time in the future.
            Unavailable: the database does not answer.
        """
        now = self._clock.now()
        when = bounded(at or now)
        if when > now:
            expected = "a time that is not ahead of now"
            raise InvalidInput(f"at: expected {expected}", (FieldError("at", expected, when.isoformat()),))
        text = redact(note or "")[:NOTE_MOST]
        with self._store.unit_of_work() as work:
            work.suspicion.get(cluster, node)
            done = note_repair(
                work, cluster, node, at=when, actor=actor, note=text or None, now=now, settings=self._settings
            )
            if done:
                message = f"{actor}: {text}" if text else actor
                key = blake2b(f"repaired\0{cluster}\0{node}\0{when.isoformat()}".encode(), digest_size=16).digest()
                work.node_events.add([NewNodeEvent(key, cluster, node, when, "repaired", message, source="person")])
                work.audit_log.append(actor, "node.repaired", f"node/{cluster}/{node}", after=text or None)
        return done

    def _schedule_reassessment(self, work: UnitOfWork, fresh: Sequence[NewNodeEvent]) -> None:
        """Schedule the reassessment of failures that these events may affect, by node and time."""
        data = evidence_weights.load()
        now = self._clock.now()
        spans: defaultdict[tuple[str, str], list[datetime]] = defaultdict(list)
        for one in fresh:
            kind = data.kinds.get(one.kind)
            start, end = bounded(one.at), bounded(one.until or one.at)
            if kind is None or kind.side is None or start > now + CLOCK_TOLERANCE or end < now - MAX_AGE:
                continue
            spans[one.cluster, one.node] += [
                start - timedelta(seconds=kind.after_s),
                end + timedelta(seconds=kind.before_s),
            ]
        work.node_work.add(
            "events",
            [
                [cluster, node, min(times).isoformat(), max(times).isoformat()]
                for (cluster, node), times in sorted(spans.items())
            ],
        )


def _by_node(places: Iterable[KnownPlace]) -> dict[tuple[str, str], NodePlace]:
    """The places by node; of several reports of one node, the last counts for what it names."""
    found: dict[tuple[str, str], NodePlace] = {}
    for one in places:
        key = one.cluster, one.node
        found[key] = one.place.with_others_of(found.get(key, NodePlace()))
    return found


FAILURES_MOST = 2_000


def note_repair(
    work: UnitOfWork,
    cluster: str,
    node: str,
    *,
    at: datetime,
    actor: str | None,
    note: str | None,
    now: datetime,
    settings: FleetSettings,
) -> bool:
    """Record a repair and compute the node's suspicion again; False if a later repair is known (nothing changes).

    The exposure of the day of the repair is reduced in proportion to the remaining time; failures count if they ended
    after it.
    """
    work.node_work.counting()
    if not work.repairs.note(cluster, node, at=at, actor=actor, text=note):
        return False
    day = day_of(at)
    stored = {one.day: one for one in work.suspicion.days([(cluster, node)], since=day)}
    of_day = stored.get(day)
    work.suspicion.set_day(cluster, node, day - 1, None)
    if of_day is not None:
        begun, ended = start_of(day), min(max(now, at), start_of(day) + DAY)
        left = (ended - at) / (ended - begun) if ended > begun else 0.0
        numbers = work.failure_facts.ids_on_nodes([Window(cluster, node, at, start_of(day + 1))], most=FAILURES_MOST)
        weights = work.failure_facts.weights(numbers).values()
        after = [one for one in weights if one.cluster == cluster and at < one.ended_at < start_of(day + 1)]
        remainder = DaySums(
            of_day.exposure_h * left,
            round(of_day.jobs * left),
            min(of_day.failures, len(numbers)),
            sum(one.weights.get(node, 0.0) for one in after),
        )
        work.suspicion.set_day(cluster, node, day, remainder)
    refresh(work, {(cluster, node)}, now=now, settings=settings)
    return True
