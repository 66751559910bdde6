"""Changes of how much jobs get, and what operators do to nodes and jobs."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import GoodRun, JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.relevance.event_candidates import Reason
from classifiers.relevance.event_words import made_older, raises_limit
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.classifiers.relevance.test_node_events import END, event, job, judged

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
STEPS = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(1, 58))
KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=8.0. Some of the step tasks have been OOM Killed.\n"
SHM = "RuntimeError: unable to write to file </torch_88_41_3>: No space left on device (28)\n"
ASKED = "2026-11-20 09:58:40 received SIGTERM, leaving the loop\n"


def items(
    log: str, *events: tuple[str, str, float], status: str = "failed", peer: LogStream | None = None
) -> list[EvidenceItem]:
    """Evidence of a run on two nodes with events of (text, source, seconds before the end).

    Those of changes and the scheduler are reported for a machine of the operators, the others for gk1.
    """
    job = JobFacts(status=status, nodes=("gk1", "gk2"), gpus=16, started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    happened = tuple(
        NodeEvent(text, ENDED - timedelta(seconds=before_s), "gk1" if source == "kernel" else "ops", source)
        for text, source, before_s in events
    )
    logs = (LogStream(log, rank=0, node="gk1"), *([] if peer is None else [peer]))
    return EXTRACTOR.extract(RawCase(job, logs, node_events=happened)).items


def first(log: str, *events: tuple[str, str, float], status: str = "failed", peer: LogStream | None = None) -> str:
    return next(item.text for item in items(log, *events, status=status, peer=peer) if item.role == "initiating")


@pytest.mark.parametrize(
    ("log", "change", "explains"),
    [
        (STEPS + KILLED, "puppet: MaxMemPerNode 980000 -> 98000 on all partitions", True),
        (STEPS + KILLED, "puppet: MaxMemPerNode 98000 -> 980000 on all partitions", False),
        (STEPS + KILLED, "puppet: MaxNodes 8 -> 4 on all partitions", False),
        (STEPS + SHM, "profile of the runtime replaced: shm_size 128m (was 64g)", True),
        (STEPS + SHM, "profile of the runtime replaced: shm_size 64g (was 128m)", False),
    ],
)
def test_a_limit_that_was_lowered_explains_what_met_it(log: str, change: str, *, explains: bool) -> None:
    status = "out_of_memory" if KILLED in log else "failed"
    assert (first(log, (change, "change", 7_200), status=status) == change) is explains


@pytest.mark.parametrize(
    ("text", "is_raised"),
    [
        ("memory limit of team b 64Gi -> 128Gi", True),
        ("memory limit of team b 512Mi -> 2Gi", True),
        ("memory limit of team b is 16Gi (was 128Gi)", False),
        ("memory limit of team b raised", True),
        ("system-reserved of the pool 8Gi -> 64Gi", False),  # the less remains for jobs
        ("agent 1.30 -> 1.31: memory limit by default", False),
    ],
)
def test_a_greater_limit_is_no_smaller_one(text: str, *, is_raised: bool) -> None:
    assert raises_limit(text, ("changes.memory-limit",)) is is_raised


def test_a_change_that_says_what_was_done_to_the_node_is_that_and_no_regression() -> None:
    drain = "change 71 begins: new image for pool k, kubectl drain gk1 --force"
    found = next(item for item in items(STEPS + ASKED, (drain, "change", 81)) if item.role == "initiating")
    assert found.text == drain
    assert [hit.id for hit in found.hits] == ["nodes.drain-command"]


def test_jobs_that_operators_end_on_a_range_of_nodes_are_those_on_it() -> None:
    ended = "window 5 begins: running jobs on gk1..gk8 are cancelled"
    killed = "[2026-11-20T09:59:58] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=4 uid 0"
    assert first(STEPS, (ended, "change", 30), (killed, "slurmctld", 2), status="cancelled") == ended
    other = ended.replace("gk1..gk8", "gk3..gk8")
    assert first(STEPS, (other, "change", 30), (killed, "slurmctld", 2), status="cancelled") == killed


@pytest.mark.parametrize(("machine", "is_other"), [("elsewhere7", True), ("gpu1", False)])
def test_a_report_of_ansible_is_about_the_machine_that_it_names(machine: str, *, is_other: bool) -> None:
    recap = event(
        f"{machine} : ok=41 changed=2 failed=0 (node_exporter)", at=END - 600, node="ops", source="change",
        entries=("changes.agents",),
    )  # fmt: skip
    lost = job(own_entries=[], other_entries=frozenset({"slurm.node-fail"}), status="node_fail")
    assert (judged(recap, lost).reason is Reason.OTHER_NODE) is is_other


def test_a_server_that_came_back_at_once_had_ended_what_was_in_progress() -> None:
    evicted = "LustreError: 167-0: fs1-MDT0-mdc-ff8c: This client was evicted by fs1-MDT0; in progress operations fail."
    restored = "Lustre: fs1-MDT0-mdc-ff8c: Connection restored to fs1-MDT0"
    failed = "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/fs1/a.h5'\n"
    assert first(STEPS + failed, (evicted, "kernel", 130), (restored, "kernel", 127)) == evicted
    assert first(STEPS + failed, (evicted, "kernel", 1_800), (restored, "kernel", 1_797)) == failed.strip()


def test_a_full_table_of_connections_explains_that_none_could_be_made() -> None:
    full = "nf_conntrack: nf_conntrack: table full, dropping packet"
    late = "torch.distributed.DistNetworkError: The client socket has timed out after 300s while trying to connect\n"
    assert first(STEPS + late, (full, "kernel", 150)) == full


def test_a_fault_of_the_switch_comes_before_those_of_the_gpus_behind_it() -> None:
    switch = "nvidia-nvswitch1: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 4 LTSSM Fault Up"
    gpu = "NVRM: Xid (PCI:0000:9b:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 4"
    error = "RuntimeError: CUDA error: unspecified launch failure\n"
    assert first(STEPS + error, (gpu, "kernel", 118), (switch, "kernel", 119)) == switch


@pytest.mark.parametrize(
    ("error", "change", "explains"),
    [
        (
            "certificate verify failed: unable to get local issuer certificate",
            "ca-certificates updated on all nodes",
            True,
        ),
        ("certificate verify failed: unable to get local issuer certificate", "ca-certificates are as before", False),
        ("the tensors have other shapes", "ca-certificates updated on all nodes", False),
    ],
)
def test_other_authorities_explain_certificates_that_are_refused(error: str, change: str, *, explains: bool) -> None:
    log = (
        f"{STEPS}requests.exceptions.SSLError: {error}\n" if "certificate" in error else f"{STEPS}ValueError: {error}\n"
    )
    assert (first(log, (change, "change", 7_200)) == change) is explains


TOO_OLD = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
NO_SYMBOL = "ImportError: /opt/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemAlloc\n"
NO_CUBLAS = "OSError: libcublas.so.12: cannot open shared object file: No such file or directory\n"


@pytest.mark.parametrize(
    ("log", "change", "worked", "explains"),
    [
        (TOO_OLD, "driver downgraded from 550.90 to 470.256", False, True),
        (TOO_OLD, "nvidia driver rolled back, module reloaded", False, True),
        (TOO_OLD, "GPU driver 550.54 to 535.60", False, True),
        (TOO_OLD, "ansible: nvidia-driver 550 -> 470", False, True),
        (TOO_OLD, "ansible: nvidia-driver 470 -> 550", False, False),
        (TOO_OLD, "ansible: nvidia-driver 470 -> 550", True, False),
        # A job may bring a newer library itself.
        (TOO_OLD, "CUDA base image updated: 12.4 -> 12.6", False, False),
        (TOO_OLD, "CUDA base image updated: 12.4 -> 12.6", True, True),
        (TOO_OLD, "CUDA base image rolled back: 12.6 -> 12.4", True, False),
        (TOO_OLD, "monitoring base image updated: 12.4 -> 12.6", True, False),
        (NO_SYMBOL, "apt: libnccl2 2.21.5 -> 2.18.3 downgraded", False, True),
        (NO_SYMBOL, "apt: libnccl2 2.18.3 -> 2.21.5 upgraded", False, False),
        (NO_SYMBOL, "apt: libnccl2 2.18.3 -> 2.21.5 upgraded", True, True),
        (NO_SYMBOL, "apt: libcudnn9 9.1.0 -> 8.9.2 downgraded", False, False),
        (NO_CUBLAS, "module default cuda/12.4 -> cuda/11.8", False, True),
    ],
)
def test_a_driver_or_library_that_was_made_older_or_newer_explains_that_versions_do_not_fit(
    log: str, change: str, *, worked: bool, explains: bool
) -> None:
    assert (begins_with(change, log, "gk1", worked=worked) == change) is explains


@pytest.mark.parametrize(("node", "explains"), [("gk1", True), (None, True), ("ops", True), ("gk7", False)])
def test_a_driver_of_a_node_of_other_jobs_explains_nothing(node: str | None, *, explains: bool) -> None:
    change = "driver downgraded from 550.90 to 470.256"
    assert (begins_with(change, TOO_OLD, node, worked=True) == change) is explains


def begins_with(change: str, log: str, node: str | None, *, worked: bool) -> str:
    job = JobFacts(status="failed", nodes=("gk1",), gpus=8, started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    happened = (NodeEvent(change, ENDED - timedelta(hours=2), node, "change"),)
    good = GoodRun(frozenset()) if worked else None
    case = RawCase(job, (LogStream(log, rank=0, node="gk1"),), node_events=happened, good_run=good)
    return next(item.text for item in EXTRACTOR.extract(case).items if item.role == "initiating")


@pytest.mark.parametrize(
    ("text", "is_older"),
    [
        ("libnccl2 2.21.5-1+cuda12.4 -> 2.18.3-1+cuda12.1", True),
        ("driver v570.2 => v570.10", False),
        ("cuda 12.4 -> cuda 11.8", True),
        ("cuda/11.8 -> cuda/12.4", False),
        ("driver reinstalled: 550.90 -> 550.90", None),
        ("image of the pool updated", False),
        ("reverted the image of the pool", True),
        ("persistence mode set", None),
    ],
)
def test_what_became_of_a_version(text: str, *, is_older: bool | None) -> None:
    assert made_older(text) is is_older
