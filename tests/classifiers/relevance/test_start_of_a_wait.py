"""Events that came when the processes of a job began to wait or to take longer, and what they say of its failure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.relevance.event_candidates import Support
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.classifiers.relevance.test_node_events import END, event, job, judged

BEGAN = datetime(2026, 5, 20, 8, tzinfo=UTC)
WATCHDOG = frozenset({"pytorch.nccl-watchdog-timeout"})
STORM = ("switches.traffic-errors",)


def first_of(log: str, what: str, *, at_s: float, node: str, source: str, status: str, ran_s: float = 7_200) -> str:
    facts = JobFacts(
        status, started_at=BEGAN, ended_at=BEGAN + timedelta(seconds=ran_s), nodes=("gpu3", "gpu4"), gpus=16
    )
    happened = NodeEvent(what, BEGAN + timedelta(seconds=at_s), node, source)
    return EXTRACTOR.extract(RawCase(facts, (LogStream(log, rank=0, node="gpu3"),), (happened,))).case.evidence[0].text


@pytest.mark.parametrize(
    ("before_s", "node", "own", "is_used"),
    [
        (40, "leaf-3", frozenset(), True),
        (-600, "leaf-3", frozenset(), False),
        (900, "leaf-3", frozenset(), False),
        (40, "gpu7", frozenset(), False),  # a port of another node
        (40, "leaf-3", frozenset({"python.key-error"}), False),
    ],
)
def test_a_failure_of_a_switch_counts_where_the_processes_wait_from_then_on(
    before_s: float, node: str, own: frozenset[str], *, is_used: bool
) -> None:
    stalled = END - 1_800
    waits: dict[str, Any] = {"stalled": stalled, "last_progress": stalled - 5, "several": True}
    seen = job(own_entries=[own] if own else [], other_entries=WATCHDOG | own, **waits)
    storm = event("PFC storm on port 48", at=stalled - before_s, node=node, source="sonic", entries=STORM)
    found = judged(storm, seen)
    assert (found.reason is None) is is_used
    assert found.support is (Support.TIME if is_used else None)


@pytest.mark.parametrize(("at_s", "leads"), [(2_400, True), (6_500, False), (-7_200, False)])
def test_a_job_may_have_become_slower_anywhere_between_two_lines(at_s: float, *, leads: bool) -> None:
    hot = "GPU 3: clock fell 1755 -> 270 MHz (HW thermal slowdown)"
    fast = [f"2026-05-20 08:{10 + n}:00 step {n} steps_per_sec=1.2{n}" for n in range(4)]
    slow = [f"2026-05-20 09:{30 + n}:00 step {40 + n} steps_per_sec=0.2{n}" for n in range(4)]
    limit = "slurmstepd: error: *** JOB 4711 ON gpu3 CANCELLED AT 2026-05-20T10:00:00 DUE TO TIME LIMIT ***"
    log = "\n".join([*fast, *slow, limit])
    first = first_of(log, hot, at_s=at_s, node="gpu4", source="dcgm", status="timeout")
    assert (first == hot) is leads


def test_a_watchdog_of_the_program_tells_since_when_it_waited() -> None:
    port = "mlx5_core 0000:1a:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded"
    log = "2026-05-20 09:59:59 heartbeat: no new step for 1800 s, aborting run\n"
    assert first_of(log, port, at_s=5_380, node="gpu4", source="kernel", status="failed") == port
    other = "2026-05-20 09:59:59 KeyError: 'label'\n"
    assert first_of(other, port, at_s=5_380, node="gpu4", source="kernel", status="failed") != port


@pytest.mark.parametrize(("peer", "leads"), [("gpu9", True), ("gpu8", False)])
def test_packets_that_a_node_rejects_count_where_the_failure_names_the_node(peer: str, *, leads: bool) -> None:
    rejected = "REJECT: IN=eno1 OUT= MAC=00 SRC=10.2.0.15 DST=10.2.0.14 LEN=60 PROTO=TCP SPT=41222 DPT=29500"
    waited = f"The client socket has timed out after 300s while trying to connect to ({peer}, 29500)."
    log = f"[E socket.cpp:957] [c10d] {waited}\ntorch.distributed.DistNetworkError: {waited}\n"
    first = first_of(log, rejected, at_s=100, node="gpu9", source="kernel", status="failed", ran_s=400)
    assert (first == rejected) is leads


@pytest.mark.parametrize(("source", "leads"), [("scratch-cleaner", True), ("home-cleaner", False)])
def test_a_purge_counts_where_a_file_is_missing_in_the_directory_that_it_is_named_for(
    source: str, *, leads: bool
) -> None:
    purged = "purge of files older than 9 days: 41,220 files deleted"
    log = "step 7 loss 2.1\nFileNotFoundError: [Errno 2] No such file or directory: '/scratch/lz/part-0031.npz'\n"
    first = first_of(log, purged, at_s=7_000, node="store1", source=source, status="failed")
    assert (first == purged) is leads


@pytest.mark.parametrize(
    ("at", "status", "node", "is_used"),
    [
        (-600.0, "timeout", "gpu1", True),
        (-600.0, "failed", "gpu1", False),
        (-600.0, "timeout", "gpu2", False),
        (-90_000.0, "timeout", "gpu1", False),
        (5_000.0, "timeout", "gpu1", False),  # its steps did not take longer then
    ],
)
def test_a_job_meets_its_limit_on_a_node_that_was_slow_before_it_began(
    at: float, status: str, node: str, *, is_used: bool
) -> None:
    limit = frozenset({"slurm.time-limit"})
    narrow = event("GPU 3: PCIe link at x4, expected x16", at=at, node=node, entries=("adapters.pcie-width",))
    seen = job(own_entries=[], other_entries=limit, status=status, failed=None)
    assert (judged(narrow, seen).reason is None) is is_used


@pytest.mark.parametrize(("before_s", "is_used"), [(60, True), (900, False)])
def test_a_failure_of_a_switch_counts_where_a_connection_is_lost_at_once(before_s: float, *, is_used: bool) -> None:
    lost = frozenset({"wordings.peer-gone"})
    down = event("port 12 down", at=END - 10 - before_s, node="leaf-3", source="snmp", entries=("switches.port-out",))
    seen = job(own_entries=[], other_entries=lost, last_progress=END - 100)
    assert (judged(down, seen).reason is None) is is_used


@pytest.mark.parametrize(("node", "is_used"), [("vlan310", True), ("gpu7", False)])
def test_a_change_of_the_network_before_the_start_keeps_a_job_from_beginning(node: str, *, is_used: bool) -> None:
    change = event("MTU set to 1500", at=500.0, node=node, source="change", entries=("changes.network",))
    seen = job(own_entries=[], other_entries=WATCHDOG, started=900.0, last_progress=None)
    assert (judged(change, seen).reason is None) is is_used


@pytest.mark.parametrize(("last_line", "hangs"), [("09:05:00", True), ("09:58:00", False)])
def test_a_job_that_prints_nothing_for_long_before_its_limit_hangs(last_line: str, *, hangs: bool) -> None:
    times = [f"08:{minute:02d}:00" for minute in range(10, 60, 5)] if hangs else []
    times += [f"09:{minute:02d}:00" for minute in range(0, int(last_line[3:5]), 5)]
    lines = [f"2026-05-20 {time} step {number} loss 2.1" for number, time in enumerate([*times, last_line])]
    limit = "slurmstepd: error: *** JOB 4711 ON gpu3 CANCELLED AT 2026-05-20T10:00:00 DUE TO TIME LIMIT ***"
    facts = JobFacts("timeout", started_at=BEGAN, ended_at=BEGAN + timedelta(hours=2), nodes=("gpu3", "gpu4"))
    raw = RawCase(facts, (LogStream("\n".join([*lines, limit]), rank=0, node="gpu3"),))
    first = EXTRACTOR.extract(raw).case.evidence[0].signature
    assert first == ("wordings.hung-until-limit" if hangs else "slurm.time-limit")


@pytest.mark.parametrize(("at_s", "node", "leads"), [(75, "gpu3", True), (75, "gpu9", False), (-900, "gpu3", False)])
def test_a_part_that_stops_when_a_job_falls_silent_until_its_limit_is_why(
    at_s: float, node: str, *, leads: bool
) -> None:
    lines = [
        "2026-05-20 08:00:12 config loaded",
        "2026-05-20 08:00:14 devices: 4",
        "2026-05-20 08:00:15 building model",
    ]
    limit = "slurmstepd: error: *** JOB 4711 ON gpu3 CANCELLED AT 2026-05-20T10:00:00 DUE TO TIME LIMIT ***"
    xid = (
        "NVRM: Xid (PCI:0000:ca:00): 119, pid=90, name=python, Timeout after 45s of waiting for RPC response from GPU3!"
    )
    first = first_of("\n".join([*lines, limit]), xid, at_s=at_s, node=node, source="kernel", status="timeout")
    assert (first == xid) is leads


def test_a_barrier_that_ran_out_of_time_tells_when_its_wait_began() -> None:
    step = "2026-05-20 09:35:01 step 5520 loss 1.117"
    barrier = "RuntimeError: Rank 8 failed to pass monitoredBarrier in 900000 ms"
    panic = "SEL: OS Critical Stop | Run-time critical stop, kernel panic | Asserted"
    waited: dict[str, Any] = {"node": "gpu4", "source": "bmc", "status": "failed", "ran_s": 6_700}
    assert first_of(f"{step}\n{barrier}\n", panic, at_s=5_731, **waited) == panic
    assert first_of(f"{step}\n{barrier}\n", panic, at_s=2_000, **waited) != panic
