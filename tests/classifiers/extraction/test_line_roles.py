"""Which line of a few begins a failure: pointers to others, servers that do not answer, faults on a device."""

import pytest

from classifiers.contracts import Evidence, JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

BAD_VALUE = "ValueError: 3 heads for 4 parts"


def evidence(*lines: str) -> tuple[Evidence, ...]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines) + "\n"),))
    return EXTRACTOR.extract(raw).case.evidence


def first(*lines: str) -> Evidence:
    return evidence(*lines)[0]


@pytest.mark.parametrize(
    "pointer",
    [
        "RuntimeError: The engine did not start. See the error messages above.",
        "RuntimeError: the scheduler died, check the above traceback",
        "ImportError: the module cannot be loaded (look up to see why)",
        "EngineDeadError: the engine is gone, its loop has errored already",
    ],
)
def test_a_line_that_points_to_others_is_not_the_beginning(pointer: str) -> None:
    assert first(f"ERROR 12-01 08:00:00 worker.py:12] {BAD_VALUE}", pointer).text.endswith(BAD_VALUE)
    assert first(pointer).text == pointer


def test_a_file_server_that_does_not_answer_comes_before_the_error_of_the_program() -> None:
    server = "nfs: server store-3 not responding, timed out"
    assert first(server, "OSError: [Errno 5] Input/output error: '/projects/run/last.pt'").text == server


@pytest.mark.parametrize(
    ("fault", "entry"),
    [
        (("Xid (PCI:0000:1a:00): 13, pid=88, name=train, Graphics SM Warp Exception on (GPC 1, TPC 0, SM 0): Out Of "
         "Range Address"), "nvidia.xid-own-access"),
        (("Xid (PCI:0000:1a:00): 31, pid=88, name=train, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS "
         "GPCCLIENT_T1_2 faulted @ 0x7f11_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"),
         "nvidia.xid-own-access"),
        ("Xid (PCI:0000:1a:00): 137, pid=88, name=train, NVLink FLA privilege error", "nvidia.xid-own-access"),
        ("Xid (PCI:0000:1a:00): 69, pid=88, name=train, Class Error: ChId 0008, Class 0000c9c0",
         "nvidia.xid-program-stopped"),
    ],
)  # fmt: skip
def test_an_access_of_a_program_is_its_own_unless_the_device_reports_a_fault_of_its_memory(
    fault: str, entry: str
) -> None:
    assert first(f"NVRM: {fault}").signature == entry
    ecc = "NVRM: Xid (PCI:0000:1a:00): 48, pid=88, An uncorrectable double bit error (DBE) has been detected"
    assert first(f"NVRM: {fault}", ecc).signature == "nvidia.xid-48"


def test_a_node_that_did_not_start_explains_that_its_job_lost_it() -> None:
    lost = "slurmctld: requeue job JobId=812 due to failure of node cloud-gpu-4"
    started = "slurmctld: node cloud-gpu-4 not resumed by ResumeTimeout(900), setting DOWN and POWERED_DOWN"
    assert first(lost).signature == "slurm.node-not-responding"
    beginnings = [one.signature for one in evidence(started, lost) if one.role == "initiating"]
    assert beginnings == ["slurm.resume-failed"]


def test_the_exception_that_all_ranks_raise_comes_after_the_error_of_one() -> None:
    head = 'Traceback (most recent call last):\n  File "/app/fit.py", line 7, in save\n    raise result\n'
    of_all = head + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([5])\n"
    own = head + "OSError: [Errno 95] Operation not supported\n"
    logs = (LogStream(of_all, rank=0, node="n1"), LogStream(own + of_all, rank=5, node="n2"))
    found = EXTRACTOR.extract(RawCase(job=JobFacts(status="failed"), streams=logs)).case.evidence
    assert [line.text for line in found if line.role == "initiating"] == ["OSError: [Errno 95] Operation not supported"]


def test_a_warning_by_which_pytorch_gives_a_device_up_begins_the_failure() -> None:
    warned = "/env/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Error 802: system not yet initialized"
    assert first(warned, "AssertionError: this program needs a GPU").text == warned
    harmless = "/env/torch/cuda/__init__.py:129: UserWarning: CUDA initialization was slow"
    assert first(harmless, "AssertionError: this program needs a GPU").text.startswith("AssertionError")


def test_names_that_were_not_resolved_explain_that_processes_did_not_meet() -> None:
    store = "[E socket.cpp:1019] [c10d] The client socket has failed to connect to any network address of (gpu3, 41221)"
    resolve = "socket.gaierror: [Errno -3] Temporary failure in name resolution, retrying in 3 s"
    assert first(resolve, store).text == resolve
