"""A file server that several nodes miss at the same time is away; one node that misses it may have a fault itself."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

BEGAN = datetime(2026, 11, 20, 9, tzinfo=UTC)
LOG = "2026-11-20 09:00:00 step 1\nOSError: [Errno 5] Input/output error: '/proj/x'\n"
AWAY = "kernel: nfs: server {} not responding, still trying"


def leading(*events: tuple[float, str, str]) -> set[str]:
    """The entries of the leading event, of events given as minute, node and text."""
    seen = tuple(NodeEvent(text, BEGAN + timedelta(minutes=at), node, "kernel") for at, node, text in events)
    facts = JobFacts("failed", nodes=("d1", "d2"), gpus=16, started_at=BEGAN, ended_at=BEGAN + timedelta(minutes=20))
    items = EXTRACTOR.extract(RawCase(facts, (LogStream(LOG),), node_events=seen)).items
    first = next(item for item in items if item.line_number is None and item.role == "initiating")
    return {hit.id for hit in first.hits}


def test_several_nodes_that_miss_one_server_at_once_speak_for_the_server() -> None:
    assert "storage.lost-by-several" in leading((17, "d1", AWAY.format("nas4")), (18, "d2", AWAY.format("nas4")))


@pytest.mark.parametrize(
    "other",
    [(18.0, "d2", AWAY.format("nas7")), (2.0, "d2", AWAY.format("nas4")), (18.0, "d1", AWAY.format("nas4"))],
    ids=["another server", "another time", "the same node"],
)
def test_else_the_node_that_misses_it_may_be_at_fault(other: tuple[float, str, str]) -> None:
    assert "storage.lost-by-several" not in leading((17, "d1", AWAY.format("nas4")), other)
