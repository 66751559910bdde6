"""The topic of node events: each event is stored once despite failures; unreadable records are kept."""

import orjson

from service.db.session import Store
from service.errors import Unavailable
from service.formats import node_events
from service.messaging.consumer import Consumer
from service.messaging.record import TopicPartition
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import FleetSettings, NodeReport
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.messaging.fakes import Clock, DeadLetterTopic, StopWhen
from tests.service.messaging.memory_source import MemoryBroker, MemorySource

PLACE = TopicPartition("nodes", 0)


def node_event(number: int) -> bytes:
    return orjson.dumps({"node": f"gpu{number}", "at": "2026-11-20T11:59:00Z", "text": "NVRM: Xid (PCI:0): 79, lost"})


def test_events_are_stored_once_despite_database_and_offset_failures(store: Store, clock: FrozenClock) -> None:
    broker = MemoryBroker({"nodes": 1}, {"nodes": "orion"})
    for value in (
        node_event(1),
        b"{",
        node_event(2),
        node_event(1),
        b'{"kind":"Event","involvedObject":{"kind":"Pod"}}',
        None,
    ):
        broker.put(PLACE, value)
    intake = NodeEventIntake(store, clock, FleetSettings())
    falls = [Unavailable("away"), Unavailable("away")]

    def handle(reports: list[NodeReport], dead: list[object]) -> object:
        if falls:
            raise falls.pop()
        return intake.handle(reports, dead)  # type: ignore[arg-type] # dead letters by construction

    letters = DeadLetterTopic()

    def consume() -> None:
        ticking = Clock()
        consumer = Consumer(
            MemorySource(broker, "a", ["nodes"]),
            node_events.parse,
            handle,  # type: ignore[arg-type] # as above
            letters,
            clock=ticking,
            telemetry=Telemetry(),
        )
        consumer.run(StopWhen(ticking, lambda: broker.committed(PLACE) == 6))

    consume()
    broker.group.committed.clear()  # the offsets were lost: everything comes again
    consume()
    with store.reading() as reading:
        found = {node: len(reading.node_events.page("orion", node).items) for node in ("gpu1", "gpu2")}
        assert len(reading.dead_letters.page().items) == 1
    assert found == {"gpu1": 1, "gpu2": 1}
    assert letters.places() == {"nodes/0/1"}
