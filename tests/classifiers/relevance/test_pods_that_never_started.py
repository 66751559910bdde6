"""Pods that never started while others prepared their data, names of pods, and the nodes that events are about."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase, Suspect
from classifiers.extraction.events.memory_tables import is_held_by_stranger
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import Extractor

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
HEAD = "bloom-worker-{}:71:302 [0] NCCL INFO NET/IB : No device found.\n"
PREPARED = "".join(f"2026-11-20 09:{minute:02d}:00 packed file {minute}/60\n" for minute in range(5, 50))
NOT_ALL = "2026-11-20 09:59:50 DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.\n"
STEPS = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(5, 59))
LOST = "2026-11-20 09:59:30 NCCL WARN Connection closed by remote peer gpu2<4000>\n"
MOUNT = 'Warning FailedMount pod/{}: MountVolume.SetUp failed for volume "data": mount failed: exit status 32'
NOTICE = "Got interruption event: Spot ITN received. Instance will be interrupted at 10:01"
CORDON = "Cordoning the node: gpu2, reason: two-minute notice"


def extracted(extractor: Extractor, log: str, *events: NodeEvent, **facts: Any) -> ExtractedCase:
    values: dict[str, Any] = {"status": "failed", "nodes": ("gpu1", "gpu2"), "gpus": 16, "scheduler": "kubernetes"}
    job = JobFacts(**(values | facts), started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    logs = (
        LogStream(HEAD.format(0) + log, rank=0, node="gpu1"),
        LogStream(HEAD.format(1) + log.replace(LOST, ""), rank=8, node="gpu2"),
    )
    return extractor.extract(RawCase(job, logs, node_events=events))


def happened(text: str, before_end_s: int, node: str | None, source: str = "kubelet") -> NodeEvent:
    return NodeEvent(text, ENDED - timedelta(seconds=before_end_s), node, source)


@pytest.mark.parametrize(
    ("pod", "node", "log", "leads"),
    [
        ("bloom-worker-3", "gpu9", PREPARED + NOT_ALL, True),
        ("bloom-worker-3", None, PREPARED + NOT_ALL, True),
        ("bloom-launcher", "gpu9", PREPARED + NOT_ALL, True),
        ("bloomz-worker-3", "gpu9", PREPARED + NOT_ALL, False),
        ("bloom-worker-1", "gpu2", PREPARED + NOT_ALL, False),  # it has a log
        ("bloom-worker-3", "gpu9", STEPS + LOST, False),  # nobody waited for it
    ],
)
def test_a_pod_that_never_started_is_what_the_others_waited_for(
    extractor: Extractor, pod: str, node: str | None, log: str, *, leads: bool
) -> None:
    mount = happened(MOUNT.format(pod), 3_300, node)
    assert (extracted(extractor, log, mount).items[0].text == mount.text) is leads


def test_a_pod_that_started_later_is_no_reason_to_wait(extractor: Extractor) -> None:
    mount = happened(MOUNT.format("bloom-worker-3"), 3_300, "gpu9")
    started = happened("Normal Started pod/bloom-worker-3: Started container main", 3_000, "gpu9")
    assert extracted(extractor, PREPARED + NOT_ALL, mount, started).items[0].text != mount.text


@pytest.mark.parametrize("node", ["gpu2", None, "control-plane-1"])
@pytest.mark.parametrize(
    "text",
    [
        "Normal NodeNotReady Node gpu2 status is now: NodeNotReady",
        "Warning Evicted pod/bloom-worker-1: The node was low on resource: memory. Threshold quantity: 100Mi",
    ],
    ids=["names the node", "names the pod"],
)
def test_an_event_that_a_controller_reports_is_of_the_node_that_it_is_about(
    extractor: Extractor, text: str, node: str | None
) -> None:
    found = extracted(extractor, STEPS + LOST, happened(text, 55, node, "node-controller"))
    assert found.case.suspect == Suspect(rank=8, node="gpu2")


def test_a_notice_comes_before_the_drain_that_it_announces(extractor: Extractor) -> None:
    events = (happened(NOTICE, 70, "gpu2", "termination-handler"), happened(CORDON, 65, "gpu2", "termination-handler"))
    found = extracted(extractor, STEPS + LOST, *events)
    assert [item.text for item in found.items if item.role == "initiating"] == [NOTICE]


def test_a_daemon_that_restarts_nodes_explains_the_launcher_that_lost_one(extractor: Extractor) -> None:
    lost = "2026-11-20 09:59:30 ORTE has lost communication with a remote daemon.\n"
    drained = happened('msg="Draining node gpu2"', 80, "gpu2", "kured")
    found = extracted(extractor, STEPS + lost, drained)
    assert [item.text for item in found.items if item.role == "initiating"] == [drained.text]


def test_an_entry_that_another_one_refutes_says_nothing_of_an_event(extractor: Extractor) -> None:
    probe = happened("Liveness probe failed: HTTP probe failed with status code 503, pod otel-x7k2p", 3_500, "cpu-4")
    pull = 'Failed to pull image "registry.example/a/b:1": status: 503 Service Unavailable, pod/bloom-worker-3'
    found = extracted(extractor, PREPARED + NOT_ALL, probe, happened(pull, 3_300, "gpu9"))
    assert found.items[0].text == pull


AGENT = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-20_09:59:31\n  host      : bloom-worker-1\n"
    "  rank      : 11 (local_rank: 3)\n  exitcode  : -9 (pid: 812)\n"
)


def test_the_agent_of_a_pod_tells_which_ranks_ran_on_its_node(extractor: Extractor) -> None:
    killed = happened("Out of memory: Killed process 990812 (python3) total-vm:9kB, anon-rss:8kB", 31, "gpu2", "kernel")
    job = JobFacts(status="failed", nodes=("gpu1", "gpu2"), gpus=16, scheduler="kubernetes", ended_at=ENDED)
    logs = (
        LogStream(HEAD.format(0) + STEPS + LOST, node="gpu1"),
        LogStream(HEAD.format(1) + "[rank8]: ValueError ignored\n" + STEPS + AGENT, node="gpu2"),
    )
    suspect = extractor.extract(RawCase(job, logs, node_events=(killed,))).case.suspect
    assert suspect == Suspect(rank=11, node="gpu2")


def test_load_of_other_programs_explains_the_stall_that_the_kernel_reports_after_it(extractor: Extractor) -> None:
    load = happened("System load per core at gpu2:9100 has been above 2, is currently at 14.20.", 500, "gpu2", "alerts")
    stall = happened("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-... }", 300, "gpu2", "kernel")
    slow = "2026-11-20 09:59:30 RuntimeError: DataLoader timed out after 90 seconds\n"
    assert extracted(extractor, STEPS + slow, load, stall).items[0].text == load.text


KILLED = "Out of memory: Killed process 812 (python3) total-vm:90000000kB, anon-rss:20000000kB, file-rss:0kB"


@pytest.mark.parametrize(
    ("report", "is_others"),
    [
        ("memory usage 98.4 %: ledger-db-0 (team-b, no limit) rss 900GiB", True),
        ("top: clickhouse using 410 GiB", True),
        ("top: clickhouse using 41 GiB", False),  # the job's own processes may hold as much
        ("top: python3 using 410 GiB", False),
        ("top: bloom-worker-0 using 410 GiB", False),
        ("node memory 990 GiB", False),
    ],
)
def test_reports_of_monitors_tell_who_held_the_memory(report: str, *, is_others: bool) -> None:
    assert is_held_by_stranger([report, KILLED], ["host bloom-worker-0\n"]) is is_others
    assert not is_held_by_stranger([report], [])
    assert not is_held_by_stranger([report, KILLED.replace("Out of memory", "Memory cgroup out of memory")], [])
