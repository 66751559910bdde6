"""Events of a node at the time of a failure that are not its cause: other objects, other jobs, other shapes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.relevance.event_candidates import MatchedEvent, Reason, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.node_events import judge
from tests.classifiers.relevance.test_node_events import END, PEER_GONE, XID_79, event, job, judged

OOM = ("kernel.oom-cgroup",)
NFS = ("storage.nfs-not-responding",)
LUSTRE = ("storage.lustre",)
TIMED_OUT = frozenset({"pytorch.nccl-watchdog-timeout"})
OWN_KILL = "Memory cgroup out of memory: Killed process 2871236 (python) total-vm:36943371kB, anon-rss:9463018kB"


def waiting(entries: frozenset[str] = TIMED_OUT, **changes: Any) -> Any:
    return job(own_entries=[], other_entries=entries, **changes)


def test_the_time_in_front_of_an_event_is_no_device() -> None:
    failed = event("Jun 08 22:41:47 gpu1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    passed = event("Jun 08 22:41:50 gpu1 smartd: /dev/nvme1: self-test passed OK", at=END - 15, index=1, entries=())
    assert read_objects(failed.text).names == {"3b:00"}
    assert judged(failed, waiting(PEER_GONE), [passed]).reason is None


@pytest.mark.parametrize("text", ["0000:3b:00.0", "PCI:0000:3b:00", "PCI:3b:00", "00000000:3B:00.0", "3b:00.0"])
def test_a_pci_address_is_read_in_all_its_forms(text: str) -> None:
    assert read_objects(f"device {text}: error").names == {"3b:00"}


def test_a_stall_is_no_reason_why_processes_lost_each_other_at_once() -> None:
    server = event("nfs: server nas4 not responding, still trying", entries=NFS)
    assert judged(server, waiting(TIMED_OUT)).reason is None
    assert judged(server, waiting(PEER_GONE)).reason is Reason.NO_TRACE


def test_a_run_that_continues_for_long_did_not_stall() -> None:
    server = event("nfs: server nas4 not responding, still trying", at=END - 460, entries=NFS)
    assert judged(server, waiting()).reason is Reason.SURVIVED


def test_what_comes_long_after_the_processes_began_to_wait_did_not_stop_them() -> None:
    late = event("nfs: server nas4 not responding, still trying", at=END - 100, entries=NFS)
    assert judged(late, waiting(failed=END - 600, last_progress=None)).reason is Reason.LATER


def test_the_time_since_when_processes_wait_supports_an_event_without_any_progress() -> None:
    seen = waiting(stalled=END - 600, last_progress=None)
    lost = ("kubernetes.node-lost",)
    assert (
        judged(event("Kubelet stopped posting node status.", at=END - 560, entries=lost), seen).support is Support.TIME
    )
    assert (
        judged(event("Kubelet stopped posting node status.", at=END - 300, entries=lost), seen).support is Support.ALONE
    )


def test_processes_that_wait_support_what_kept_another_one_from_starting() -> None:
    refused = event("OCI runtime create failed: runc create failed", at=END - 400, entries=("kubernetes.runc",))
    seen = waiting(last_progress=None, started=END - 900)
    assert judged(refused, seen).support is Support.TIME
    assert judged(refused, waiting(frozenset(), last_progress=None, started=END - 900)).support is Support.ALONE


def test_a_report_on_another_job_concerns_the_event_before_it() -> None:
    seen = waiting(PEER_GONE)
    text = "slurmstepd: error: Detected 1 oom_kill event in StepId=9999.batch. Some tasks have been OOM Killed."
    kill = event(OWN_KILL, entries=OOM)
    after = event(text, at=END - 17, index=1, entries=("slurm.oom",))
    assert judged(kill, seen, [after]).reason is Reason.OTHER_PROCESS
    before = event(text, at=END - 90, index=1, entries=("slurm.oom",))
    assert judged(kill, seen, [before]).reason is None


def test_a_report_on_another_job_concerns_the_kill_that_names_that_job() -> None:
    kill = event(OWN_KILL, entries=OOM)
    theirs = event("oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/slurm/job_9999/step_0,task=R,pid=1222448,uid=7",
                   at=END - 18, index=1, entries=OOM)  # fmt: skip
    report = event("slurmstepd: error: Detected 1 oom_kill event in StepId=9999.batch.", at=END - 16, index=2,
                   entries=("slurm.oom",))  # fmt: skip
    assert judged(kill, waiting(PEER_GONE), [theirs, report]).reason is None


def test_another_kind_of_fault_of_another_job_does_not_affect_an_event() -> None:
    trap = event("x86/split lock detection: #DB: a.out/2826859 took a bus_lock trap (job_9999)", index=1, entries=())
    assert judged(event(), job(), [trap]).reason is None


def test_a_port_that_is_active_again_has_recovered() -> None:
    down = event("mlx5_core 0000:81:00.0: mlx5_2: Port: 1 Link DOWN", entries=("network.ib-link-down",))
    active = event("mlx5_core 0000:81:00.0: mlx5_2: Port: 1 Link ACTIVE", at=END - 15, index=1, entries=())
    assert judged(down, waiting(), [active]).reason is Reason.RECOVERED


def test_an_event_of_an_unused_file_system_is_of_another_device() -> None:
    failed = event(
        "LustreError: 11-0: archive-OST0003-osc-ffff8e2b: operation ost_connect failed: rc = -19", entries=LUSTRE
    )
    unused = event("file system archive is mounted at /archive, no process of JobId=4711 has it open", at=END - 15,
                   source="healthcheck", index=1, entries=())  # fmt: skip
    assert judged(failed, waiting()).reason is None
    assert judged(failed, waiting(), [unused]).reason is Reason.OTHER_DEVICE


def test_an_event_that_names_no_server_recovers_with_its_driver() -> None:
    slow = event("Lustre: 3473661:0:(client.c:2289) @@@ Request sent has timed out for slow reply", entries=LUSTRE)
    back = event(
        "Lustre: lustre-MDT0000-mdc-ffff: Connection restored to 10.1.1.9@o2ib", at=END - 15, index=1, entries=()
    )
    other = event("mlx5_core 0000:81:00.0 mlx5_2: Port: 1 Link up", at=END - 15, index=1, entries=())
    assert judged(slow, waiting(), [back]).reason is Reason.RECOVERED
    assert judged(slow, waiting(), [other]).reason is None


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("GPU 3: NVLink Link 5: Replay Errors: 8, Recovery Errors: 0, CRC Errors: 4", "nvidia.nvlink-down"),
        ("NVRM: Xid (PCI:0000:b9:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
         "nvidia.xid-154"),
    ],
)  # fmt: skip
def test_what_was_corrected_or_needs_no_action_is_harmless(text: str, entry: str) -> None:
    assert judged(event(text, entries=(entry,)), waiting(PEER_GONE)).reason is Reason.CORRECTED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("goofys on /mnt/data: Transport endpoint is not connected", None),
        ("NHC: check_fs_mount: /lustre not mounted", None),
        ("NHC: check_fs_mount: /lustre not mounted, no job was affected", Reason.CORRECTED),
        ("disk sdc of goofys is not mounted", Reason.CORRECTED),
    ],
)
def test_a_lost_mount_is_not_mistaken_for_an_unused_one(text: str, reason: Reason | None) -> None:
    one = event(text, entries=("storage.fuse-mount",))
    assert judged(one, waiting(frozenset({"python.remote-io"}))).reason is reason


@pytest.mark.parametrize(
    ("program", "reason"), [("tritonserver", Reason.OTHER_PROCESS), ("python", None), ("<unknown>", None)]
)
def test_a_gpu_event_of_a_program_that_no_training_job_runs_is_of_another_process(
    program: str, reason: Reason | None
) -> None:
    text = f"NVRM: Xid (PCI:0000:3b:00): 109, pid=80121, name={program}, errorString CTX SWITCH TIMEOUT"
    assert judged(event(text, entries=("nvidia.xid-38",)), waiting()).reason is reason


def test_a_crash_of_a_desktop_program_is_of_another_process() -> None:
    text = "gnome-shell[2353108]: segfault at 0 ip 00007fa269c8aa sp 00007ffda269c8aa error 4 in libmutter.so"
    seen = job(own_entries=[frozenset({"wordings.crashed"})], other_entries=frozenset({"wordings.crashed"}))
    assert judged(event(text, entries=("python.segfault",)), seen).reason is Reason.OTHER_PROCESS


def test_a_scheduler_service_does_not_explain_that_names_are_not_resolved() -> None:
    munge = MatchedEvent(0, "slurmd: error: Credential signature check: Expired credential", "gpu7", "slurmd", END - 20,
                      ("slurm.munge",))  # fmt: skip
    seen = waiting(TIMED_OUT | {"python.name-resolution"})
    assert judge([munge], [munge], seen)[0].reason is Reason.NO_TRACE


def test_an_event_alone_does_not_explain_the_words_that_end_a_log() -> None:
    silent = waiting(frozenset(), failed=None)
    assert judged(event(), silent).support is Support.ALONE
    assert judged(event(), replace(silent, ends_in_words=True)).reason is Reason.NOT_SHOWN


def test_a_lost_gpu_does_not_explain_a_log_of_one_unknown_line(extractor: Extractor) -> None:
    facts = JobFacts(status="failed", nodes=("gpu1",))
    lost = NodeEvent(text=XID_79, node="gpu1", source="kernel")
    found = extractor.extract(RawCase(job=facts, streams=(LogStream(text="tokens in disorder"),), node_events=(lost,)))
    assert all(item.node != "gpu1" for item in found.items)


@pytest.mark.parametrize(
    ("end", "is_used"),
    [("", True), ("the tokens of the second epoch are out of order\n", False), ("step 401 loss 2.0\n", True)],
)
def test_a_lost_gpu_begins_a_failure_only_where_the_log_does_not_end_in_other_words(
    extractor: Extractor, end: str, *, is_used: bool
) -> None:
    at = datetime(2026, 11, 20, 10, tzinfo=UTC)
    facts = JobFacts(status="failed", nodes=("gpu1",), started_at=at - timedelta(hours=2), ended_at=at)
    lost = NodeEvent(text=XID_79, node="gpu1", at=at - timedelta(seconds=20), source="kernel")
    text = "building the model\nloading 40 shards\nlooking for tokens\nreading the vocabulary\n" + end
    found = extractor.extract(RawCase(job=facts, streams=(LogStream(text=text),), node_events=(lost,)))
    assert (found.items[0].node == "gpu1" and found.items[0].role == "initiating") is is_used


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("health agent: GPU 3 does not respond", None),
        ("health agent: GPU 3 did not respond for 9 s, responding again", Reason.RECOVERED),
    ],
)
def test_general_words_count_unless_the_part_works_again(text: str, reason: Reason | None) -> None:
    assert judged(event(text, entries=("events.gpu-failed",)), waiting()).reason is reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("switch 7 port 3: errors, throughput back to normal", Reason.RECOVERED),
        ("switch 7 port 3: pause storm; restored; detected again, 214 times since the last report", None),
        ("NIC Link is Up 1 Gbps", None),  # it works again, but slower
    ],
)
def test_any_report_counts_unless_it_says_that_it_is_over(text: str, reason: Reason | None) -> None:
    slowed = job(own_entries=[], other_entries=frozenset({"network.ib-retry"}))
    found = judged(event(text, entries=("switches.traffic-errors",)), slowed).reason
    assert (found is Reason.RECOVERED) is (reason is Reason.RECOVERED)


def test_the_end_of_a_silence_of_alerts_is_no_fault() -> None:
    over = event("silence expired: maintenance window of last month", entries=("slurm.drain",))
    assert judged(over, waiting()).reason is Reason.CORRECTED


@pytest.mark.parametrize(("other", "is_other"), [("rack2-b07", True), ("rack2-a03", False)])
def test_a_node_of_another_row_is_another_node(other: str, *, is_other: bool) -> None:
    down = event(f"port 17/2 down (peer {other})", node="leaf-3", source="switch", entries=("network.ib-link-down",))
    seen = waiting(nodes=frozenset({"rack2-a03", "rack2-a04"}))
    assert (judged(down, seen).reason is Reason.OTHER_NODE) is is_other
