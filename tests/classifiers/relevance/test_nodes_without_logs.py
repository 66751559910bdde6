"""Events of nodes whose logs are missing, and of stores when a file was written."""

from typing import Any

import pytest

from classifiers.relevance.event_candidates import Reason, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.node_events import judge
from tests.classifiers.relevance.test_node_events import CUDA_ERROR, END, PEER_GONE, event, job, judged

TORN = frozenset({"python.pickle-load"})
FAILOVER = "ost3 failover to oss9 done, 12 transactions lost"
OF_SERVER = ("events.filesystem-failed",)


@pytest.mark.parametrize("lost", ["ray.node-died", "mpi.lost-daemon"])
def test_a_node_that_the_log_calls_lost_is_found_among_those_without_logs(lost: str) -> None:
    names: dict[str, Any] = {"nodes": frozenset({"gpu1", "gpu2"}), "has_more_nodes": True}
    panic = event("Kernel panic - not syncing: Fatal machine check", node="gpu3", entries=("kernel.panic",))
    seen = job(own_entries=[], other_entries=PEER_GONE | {lost}, last_progress=END - 3_000, **names)
    assert judged(panic, seen).support is Support.LOG
    only_peers = job(own_entries=[], other_entries=PEER_GONE, last_progress=END - 3_000, **names)
    assert judged(panic, only_peers).reason is not None


def test_an_event_of_a_node_without_logs_counts_where_the_job_had_more_nodes() -> None:
    waiting: dict[str, Any] = {"own_entries": [], "other_entries": PEER_GONE | CUDA_ERROR}
    of_other = event(node="gpu7")
    assert judged(of_other, job(**waiting)).reason is Reason.OTHER_NODE
    assert judged(of_other, job(**waiting, has_more_nodes=True)).support is Support.LOG
    assert judged(event(node="login-7"), job(**waiting, has_more_nodes=True)).reason is Reason.OTHER_NODE


def test_an_event_of_a_known_node_comes_first() -> None:
    waiting = job(own_entries=[], other_entries=PEER_GONE | CUDA_ERROR, has_more_nodes=True)
    events = [event(node="gpu1"), event(node="gpu7", index=1)]
    assert [one.reason for one in judge(events, events, waiting)] == [None, Reason.OTHER_NODE]


def test_what_was_lost_beside_what_recovered_is_no_recovery() -> None:
    assert not read_objects("80 clients recovered, 12 transactions lost").is_recovery
    assert read_objects("80 clients recovered, 0 transactions lost").is_recovery
