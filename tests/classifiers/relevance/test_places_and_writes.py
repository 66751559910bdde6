"""Events of nodes whose logs are missing, of the time when a file was written, and of who held the memory."""

from typing import Any

import pytest

from classifiers.extraction.events.memory_tables import holds_more_than_killed
from classifiers.relevance.event_candidates import Reason, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.node_events import judge
from tests.classifiers.relevance.test_node_events import CUDA_ERROR, END, PEER_GONE, event, job, judged

KILLED = "Out of memory: Killed process 812 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB"
TORN = frozenset({"python.pickle-load"})
FAILOVER = "ost3 failover to oss9 done, 12 transactions lost"
OF_SERVER = ("events.filesystem-failed",)


def row(pid: int, rss: int, name: str) -> str:
    return f"[{pid:7d}]  1000 {pid} 99000000 {rss:8d}        0 1200000        0             0 {name}"


@pytest.mark.parametrize(
    ("held", "is_other"), [(900_000, True), (150_000, False)], ids=["several times as much", "about as much"]
)
def test_the_table_of_the_kernel_tells_who_held_the_memory(held: int, *, is_other: bool) -> None:
    rows = [row(812, 60_000, "python3"), row(813, 40_000, "python3"), row(99, held, "collectd")]
    assert holds_more_than_killed([*rows, KILLED]) is is_other
    assert not holds_more_than_killed(rows)


@pytest.mark.parametrize(
    ("killed", "is_other"),
    [("Out of memory: Killed", True), ("Memory cgroup out of memory: Killed", False)],
    ids=["the node was full", "its own limit was reached"],
)
def test_without_a_row_of_the_killed_process_its_message_says_what_it_held(killed: str, *, is_other: bool) -> None:
    message = f"{killed} process 812 (python3) total-vm:9000000kB, anon-rss:4000000kB, file-rss:0kB"
    assert holds_more_than_killed([row(99, 9_000_000, "collectd"), message]) is is_other
    assert not holds_more_than_killed([row(99, 7_000_000, "collectd"), message])  # eight of them could hold as much


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


@pytest.mark.parametrize(("written", "is_used"), [(END - 5_000, True), (END - 9_000, False)])
def test_a_failure_of_a_store_explains_damage_of_what_was_saved_at_that_time(written: float, *, is_used: bool) -> None:
    failover = event(FAILOVER, at=END - 4_990, node="oss9", source="storage", entries=OF_SERVER)
    seen = job(own_entries=[TORN], other_entries=TORN, written=lambda: (written,))
    assert (judged(failover, seen).reason is None) is is_used


def test_what_was_lost_beside_what_recovered_is_no_recovery() -> None:
    assert not read_objects("80 clients recovered, 12 transactions lost").is_recovery
    assert read_objects("80 clients recovered, 0 transactions lost").is_recovery
