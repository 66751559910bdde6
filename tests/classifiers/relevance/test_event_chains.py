"""Events that cause other events come before them, and what the log shows of the effect supports the cause."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.extractor import Extractor
from classifiers.relevance.event_candidates import JobEvidence, Reason, Support
from classifiers.relevance.node_events import judge
from tests.classifiers.relevance.test_node_events import END, PEER_GONE, event, job

EXPIRED = "kubelet: Current certificate is expired, rotation failed"
LOST = "Node gpu1 status is now: NodeNotReady"
ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)


def lost_peer(**changes: Any) -> JobEvidence:
    return job(**({"own_entries": [], "other_entries": PEER_GONE} | changes))


def items(extractor: Extractor, log: str, *events: NodeEvent, **facts: Any) -> list[EvidenceItem]:
    values: dict[str, Any] = {"status": "failed", "nodes": ("gpu1", "gpu2"), "gpus": 16}
    seen = JobFacts(**(values | facts), started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    return extractor.extract(RawCase(seen, (LogStream(log, rank=0, node="gpu2"),), node_events=events)).items


def happened(text: str, before_end_s: int, node: str = "gpu1", source: str = "kubelet") -> NodeEvent:
    return NodeEvent(text, ENDED - timedelta(seconds=before_end_s), node, source)


def test_the_cause_of_a_used_event_is_used_although_the_run_went_on_after_it() -> None:
    expired = event(EXPIRED, at=END - 400, source="kubelet", entries=("kubernetes.kubelet-access",))
    lost = event(LOST, at=END - 20, source="controller", index=1, entries=("kubernetes.node-lost",))
    alone = judge([expired], [expired], lost_peer())[0]
    first, second = judge([expired, lost], [expired, lost], lost_peer())
    assert alone.reason is Reason.SURVIVED
    assert (first.support, first.leads) == (second.support, (1,))
    assert second.leads == ()


@pytest.mark.parametrize(("node", "at"), [("gpu7", END - 400), ("gpu1", END - 10), ("gpu1", END - 8_000)])
def test_an_event_of_another_node_or_time_is_no_cause(node: str, at: float) -> None:
    expired = event(EXPIRED, at=at, node=node, source="kubelet", entries=("kubernetes.kubelet-access",))
    lost = event(LOST, at=END - 20, source="controller", index=1, entries=("kubernetes.node-lost",))
    assert judge([expired, lost], [expired, lost], lost_peer())[0].leads == ()


def test_the_effect_is_a_consequence_and_the_cause_leads(extractor: Extractor) -> None:
    log = "2026-11-20 09:50:00 step 10 loss 2.0\n2026-11-20 09:59:00 NCCL WARN Connection closed by remote peer gpu1\n"
    found = items(extractor, log, happened(EXPIRED, 500), happened(LOST, 70))
    assert [item.text for item in found if item.role == "initiating"] == [EXPIRED]
    assert [item.text for item in found if item.hits and item.hits[0].id == "kubernetes.node-lost"] == [LOST]
    assert next(item.role for item in found if item.text == LOST) == "cascade"


def test_an_update_of_the_nodes_leads_the_drain_of_one(extractor: Extractor) -> None:
    log = "2026-11-20 09:50:00 step 10 loss 2.0\n2026-11-20 09:59:00 NCCL WARN Connection closed by remote peer gpu1\n"
    update = happened("node_group a100: version 1.31.2 -> 1.31.4, nodes replaced one by one", 3_000, "*", "change")
    drained = happened("Node gpu1 status is now: NodeNotSchedulable", 80)
    assert items(extractor, log, update, drained)[0].text == update.text
    assert items(extractor, log, update)[0].text != update.text


def test_a_change_that_is_reported_as_done_has_not_recovered() -> None:
    changed = event("containerd restarted, is back up and running", at=END - 60, entries=("changes.runtime",))
    down = event("container runtime is down", at=END - 40, index=1, entries=("kubernetes.runtime-down",))
    back = event("Node gpu1 status is now: NodeReady", at=END - 30, index=2, entries=())
    found = judge([changed, down], [changed, down, back], lost_peer(failed=END - 35))
    assert found[0].reason is None or found[0].reason is not Reason.RECOVERED


PULL = 'Failed to pull image "registry.example/a/b:{}": manifest unknown'


@pytest.mark.parametrize("node", ["gpu1", "gpu77"])
def test_what_kept_a_pod_from_its_start_counts_on_any_node(extractor: Extractor, node: str) -> None:
    log = "job fit is created\nwaiting for workers (30 s)\nwaiting for workers (60 s)\n"
    assert items(extractor, log, happened(PULL.format(1), 900, node))[0].text == PULL.format(1)


def test_what_kept_a_pod_from_its_start_is_of_others_where_the_job_made_progress(extractor: Extractor) -> None:
    steps = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(10, 50))
    timed_out = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE)\n"
    pull = happened(PULL.format(1), 900, "gpu77")
    began, never_began = items(extractor, steps + timed_out, pull), items(extractor, timed_out, pull)
    assert all(item.role == "context" for item in began if item.text == pull.text)
    assert never_began[0].text == pull.text


def test_a_pull_that_succeeded_later_is_no_cause_and_one_of_another_image_changes_nothing(extractor: Extractor) -> None:
    failed, log = happened(PULL.format(1), 900), "waiting for workers (30 s)\n"
    same = happened('Successfully pulled image "registry.example/a/b:1" in 2s', 880)
    other = happened('Successfully pulled image "registry.example/a/b:2" in 2s', 880)
    assert items(extractor, log, failed, other)[0].text == failed.text
    assert items(extractor, log, failed, same)[0].text != failed.text


def test_the_process_that_was_ended_from_outside_has_no_line_of_it() -> None:
    silent = lost_peer(other_entries=frozenset(), failed=None)
    probe = ("kubernetes.probe-failed",)
    assert judge([event("Container fit failed liveness probe", at=END - 60, entries=probe)], (), silent)[0].support
    early = event("Container fit failed liveness probe", at=END - 1_000, entries=probe)
    assert judge([early], (), lost_peer(other_entries=frozenset(), failed=None, last_progress=None))[0].reason


def test_file_servers_are_reported_where_they_run() -> None:
    full = event("ceph: HEALTH_ERR 1 full osd(s)", node="mon3", at=END - 60, entries=("storage.ceph",))
    assert judge([full], [full], job(own_entries=[frozenset({"python.no-space"})]))[0].support is Support.LOG
    assert judge([full], [full], job(own_entries=[frozenset({"python.key-error"})]))[0].reason is Reason.OTHER_NODE
    client = event("ceph: HEALTH_ERR 1 full osd(s)", node="gpu9", at=END - 60, entries=("storage.ceph",))
    assert judge([client], [client], job(own_entries=[frozenset({"python.no-space"})]))[0].reason is Reason.OTHER_NODE


@pytest.mark.parametrize(("own", "is_used"), [([frozenset[str]()], True), ([frozenset({"python.key-error"})], False)])
def test_words_that_no_entry_knows_do_not_hide_what_an_event_explains(
    own: list[frozenset[str]], *, is_used: bool
) -> None:
    stopped = event("Stopping container cilium-agent", entries=("kubernetes.agent-restarted",))
    seen = job(own_entries=own, other_entries=frozenset({"service.max-retries"}))
    assert (judge([stopped], [stopped], seen)[0].support is Support.LOG) is is_used


@pytest.mark.parametrize("stamp", ["", "2026-11-20T09:59:30.120034Z "])
def test_warnings_of_nccl_are_its_errors_also_where_a_collector_stamps_lines(extractor: Extractor, stamp: str) -> None:
    log = f"{stamp}gpu2:31:402 [0] NCCL WARN NET/IB : Got completion with status=12 opcode=0 len=0 vendor err 129\n"
    log += f"{stamp}[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or network error\n"
    first = next(item for item in items(extractor, log) if item.role == "initiating")
    assert [hit.id for hit in first.hits] == ["network.ib-completion-12"]


def test_an_event_means_what_the_other_events_of_its_node_make_of_it(extractor: Extractor) -> None:
    pressure = happened("Node gpu1 status is now: NodeHasDiskPressure", 80)
    own = "The node was low on resource: ephemeral-storage. Container fit was using {}, request is 0."
    facts = {"status": "evicted", "nodes": ("gpu1",)}
    found = items(extractor, "step 1\n", pressure, happened(own.format("912Gi"), 70), **facts)
    assert [item.text for item in found if item.role == "initiating"] == [own.format("912Gi")]
    found = items(extractor, "step 1\n", pressure, happened(own.format("84Ki"), 70), **facts)
    assert pressure.text in [item.text for item in found if item.role == "initiating"]


def test_more_nodes_for_a_pool_take_none_away() -> None:
    more = event("pod/fluentbit triggered scale-up: [{pool-a 2->4 (max: 8)}]", entries=("changes.agents",))
    assert judge([more], [more], lost_peer())[0].reason is Reason.CORRECTED


def test_a_lost_gpu_leads_to_the_refusal_of_a_pod_hours_later() -> None:
    entries = frozenset({"kubernetes.device-plugin"})
    seen = job(own_entries=[entries], other_entries=entries, started=END - 600, last_progress=None)
    lost = event(at=END - 9_000)
    refused = event(
        "UnexpectedAdmissionError: Allocate failed", at=END - 400, source="kubelet", index=1, entries=tuple(entries)
    )
    assert judge([lost, refused], [lost, refused], seen)[0].leads == (1,)
    back = event("node gpu1 returned to service", at=END - 5_000, source="slurm", index=2, entries=())
    assert judge([lost, refused], [lost, refused, back], seen)[0].reason is Reason.RECOVERED


def test_a_page_that_the_kernel_took_out_of_use_is_no_recovery_of_the_memory() -> None:
    text = "mce: Uncorrected hardware memory error in user-access at 7c40"
    failed = event(text, at=END - 200, entries=("kernel.edac-ue",))
    entries = frozenset({"python.bus-error"})
    seen = job(own_entries=[entries], other_entries=entries, last_progress=END - 210)
    page = "Memory failure: 0x7c4: recovery action for dirty LRU page: Recovered"
    taken = event(page, at=END - 199, index=1, entries=())
    assert judge([failed], [failed, taken], seen)[0].reason is None
    module = event("memory of DIMM A1 recovered", at=END - 199, index=1, entries=())
    assert judge([failed], [failed, module], seen)[0].reason is Reason.RECOVERED


def test_what_a_daemon_of_the_platform_logged_before_the_job_is_not_when_the_job_failed(extractor: Extractor) -> None:
    plugin = "2026-11-20 08:20:00 health.go:186] XidCriticalError: device plugin marks GPU-1 unhealthy\n"
    log = plugin + "2026-11-20 09:59:00 NCCL WARN Connection closed by remote peer gpu1\n"
    refused = "UnexpectedAdmissionError: Allocate failed due to no healthy devices present"
    assert refused in [item.text for item in items(extractor, log, happened(refused, 3_400, node="gpu2"))]


def test_a_lower_limit_of_processes_leads_the_refusal_of_the_kernel(extractor: Extractor) -> None:
    log = "2026-11-20 09:50:00 step 10 loss 2.0\n2026-11-20 09:59:00 RuntimeError: can't start new thread\n"
    limit = happened("node config: TasksMax 32768 -> 2048 applied to pool train", 80_000, source="change")
    refused = happened("cgroup: fork rejected by pids controller in /kubepods.slice/pod7", 62, source="kernel")
    assert items(extractor, log, limit, refused)[0].text == limit.text


ASKED = "2026-11-20 09:58:00 received SIGTERM, leaving the training loop\n"


@pytest.mark.parametrize(
    "text",
    [
        "Warning Evicted pod/fit-0 The node was low on resource: memory.",
        "Container trainer failed liveness probe, will be restarted",
        "Deleting running pods on node gpu2: fit-0",
    ],
)
def test_what_asks_a_pod_to_end_comes_before_the_signal_of_its_processes(extractor: Extractor, text: str) -> None:
    log = "fit-0:7:7 [0] NCCL INFO start\n2026-11-20 09:57:30 step 10 loss 2.0\n"
    lost = "2026-11-20 09:58:30 RuntimeError: Connection closed by peer [10.0.0.1]:401\n"
    seen = JobFacts(
        status="failed", nodes=("gpu1", "gpu2"), gpus=16, started_at=ENDED - timedelta(hours=1), ended_at=ENDED
    )
    logs = (LogStream(log + ASKED, rank=0, node="gpu2"), LogStream(log + lost, rank=8, node="gpu1"))
    found = extractor.extract(RawCase(seen, logs, node_events=(happened(text, 121, node="gpu2"),))).items
    assert next(item.text for item in found if item.role == "initiating") == text
