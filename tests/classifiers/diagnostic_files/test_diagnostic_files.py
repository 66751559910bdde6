"""Diagnostic files: what they show, as evidence of the case; the texts are written for this test."""

import json
import time
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.case_builder import build_case
from classifiers.contracts import DIAGNOSTIC_KINDS, Case, LogStream
from classifiers.diagnostic_files.streams import read_diagnostic_files
from tests.classifiers.packaged_catalogue import EXTRACTOR

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/srv/train.py", line 70, in main\n    step(batch)\n'
    "ZeroDivisionError: division by zero\n"
)
TEARDOWN = "[rank0]: RuntimeError: [1] is setting up NCCL communicator: Connection reset by peer\n"
GPU = """
==============NVSMI LOG==============
Attached GPUs                             : 2
GPU 00000000:19:00.0
    Minor Number                          : 0
    GPU Recovery Action                   : None
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 0
        Aggregate
            DRAM Uncorrectable            : 4
    Remapped Rows
        Pending                           : No
        Remapping Failure Occurred        : No
GPU 00000000:9A:00.0
    Minor Number                          : 5
    Clocks Event Reasons
        HW Slowdown                       : Not Active
        HW Thermal Slowdown               : Active
    ECC Errors
        Volatile
            DRAM Uncorrectable            : 2
            Channel Repair Pending        : No
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
"""
RAS = """
Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487 on node 10.0.0.13 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21
"""
SACCT = """JobID|State|ExitCode|DerivedExitCode|Reason|ReqMem|MaxRSS|MaxRSSNode|MaxRSSTask
812|OUT_OF_MEMORY|0:125|0:0|None|64G|||
812.batch|COMPLETED|0:0|||64G|1204K|gpu03|0
812.0|OUT_OF_MEMORY|0:125|||64G|66900000K|gpu04|9
"""
WAITING = """Process 41: python train.py
Python v3.12.3 (/usr/bin/python3.12)

Thread 0x7F01 (idle): "Thread-1 (_worker)"
    wait (threading.py:359)
Thread 41 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2810)
    wrapper (torch/distributed/c10d_logger.py:81)
    train (train.py:70)
    <module> (train.py:90)
"""
BUSY = """Process 42: python train.py
Python v3.12.3 (/usr/bin/python3.12)

Thread 42 (active): "MainThread"
    read (tarfile.py:690)
    next_shard (data/shards.py:31)
    train (train.py:66)
    <module> (train.py:90)
"""


def extract(*logs: dict[str, Any], **facts: Any) -> Case:
    event = {"status": "failed", "nodes": ["gpu03", "gpu04"], "gpus": 8, **facts, "logs": list(logs)}
    return EXTRACTOR.extract(build_case(event)).case


def test_a_torchrun_error_file_is_read_like_the_log_of_its_rank() -> None:
    message = {"message": "ZeroDivisionError: division by zero", "extraInfo": {"py_callstack": TRACEBACK, "rank": 3}}
    case = extract({"rank": 0, "tail": TEARDOWN}, {"kind": "torchrun_error", "tail": json.dumps({"message": message})})
    first = case.evidence[0]
    assert (first.role, first.text, first.rank) == ("initiating", "[rank3]: ZeroDivisionError: division by zero", 3)
    assert first.stream == "torchrun_error"
    assert case.suspect is not None
    assert case.suspect.rank == 3


def test_a_secret_that_json_escapes_hid_is_removed() -> None:
    message = "ValueError: no login with db_password=пароль-Ж7x"
    raw = {"kind": "torchrun_error", "rank": 2, "tail": json.dumps({"message": message})}
    texts = [one.text for one in extract(raw).evidence]
    assert texts
    assert not any("Ж7" in text for text in texts)


def test_a_torchrun_error_file_may_hold_only_a_text() -> None:
    tail = json.dumps({"message": "ValueError: the learning rate is negative"})
    case = extract({"kind": "torchrun_error", "rank": 2, "tail": tail})
    assert [(one.text, one.rank) for one in case.evidence if one.role == "initiating"] == [
        ("[rank2]: ValueError: the learning rate is negative", 2)
    ]


@pytest.mark.parametrize("message", ["<NONE>", {"message": "<NONE>"}])
def test_an_error_file_without_an_exception_is_no_evidence(message: Any) -> None:
    case = extract({"kind": "torchrun_error", "rank": 2, "tail": json.dumps({"message": message})})
    assert not any("<NONE>" in one.text for one in case.evidence)
    assert any("torchrun error file of rank 2" in one for one in case.missing)


def test_states_of_gpus_are_node_events_and_counters_of_the_past_are_not() -> None:
    found = read_diagnostic_files([LogStream(GPU, node="gpu04", stream="nvidia_smi")])
    assert [(one.node, one.text) for one in found.node_events] == [
        ("gpu04", "GPU 1 (PCI 00000000:9a:00.0): 2 uncorrectable ECC errors since the driver was loaded"),
        ("gpu04", "GPU 1 (PCI 00000000:9a:00.0): HW thermal slowdown active"),
        ("gpu04", "GPU 1 (PCI 00000000:9a:00.0): row remap pending: yes"),
    ]
    assert all(event.source == "nvidia-smi" for event in found.node_events)


def test_a_gpu_has_no_number_where_not_all_are_listed() -> None:
    some = GPU.replace("Attached GPUs                             : 2", "Attached GPUs                             : 8")
    texts = [one.text for one in read_diagnostic_files([LogStream(some, stream="nvidia_smi")]).node_events]
    assert texts[0] == "GPU at PCI 00000000:9a:00.0: 2 uncorrectable ECC errors since the driver was loaded"


def test_states_of_gpus_are_evidence_where_the_log_fits() -> None:
    log = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    case = extract({"rank": 5, "node": "gpu04", "tail": log}, {"kind": "nvidia_smi", "node": "gpu04", "tail": GPU})
    assert any("2 uncorrectable ECC errors" in one.text and one.note is None for one in case.evidence)


def test_a_lost_gpu_is_reported() -> None:
    text = "Unable to determine the device handle for GPU0000:9A:00.0: GPU is lost.  Reboot the system\n"
    [event] = read_diagnostic_files([LogStream(text, node="n1", stream="nvidia_smi")]).node_events
    assert "GPU is lost" in event.text


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("[83112.004512] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", None),
        ("[    3.004512] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", None),
        ("<3>[83112.004512] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", None),
        ("[Mon Nov 30 09:58:07 2026] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", "09:58:07"),
        (
            "kern  :err   : [Mon Nov 30 09:58:07 2026] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.",
            "09:58:07",
        ),
        ("2026-11-30T10:58:07,004512+01:00 NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", "09:58:07"),
        (
            "2026-11-30T09:58:07+0000 gpu04 kernel: NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.",
            "09:58:07",
        ),
        ("Nov 30 09:58:07 gpu04 kernel: NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", None),
        ("NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.", None),
    ],
)
def test_lines_of_a_kernel_are_node_events(line: str, at: str | None) -> None:
    [event] = read_diagnostic_files([LogStream(f"{line}\n\n", node="gpu04", stream="dmesg")]).node_events
    assert (event.node, event.source) == ("gpu04", "kernel")
    assert event.text == "NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus."
    assert (None if event.at is None else f"{event.at.astimezone(UTC):%H:%M:%S}") == at


def test_lines_of_a_kernel_are_evidence_where_the_log_fits_and_no_log_themselves() -> None:
    lost = "[83112.004512] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.\n"
    log = "RuntimeError: CUDA error: unspecified launch failure\n"
    case = extract({"rank": 5, "node": "gpu04", "tail": log}, {"kind": "dmesg", "node": "gpu04", "tail": lost})
    assert [(one.stream, one.node) for one in case.evidence if "Xid" in one.text] == [("node", "gpu04")]
    assert case.missing == ()


def test_the_last_lines_of_a_kernel_are_read() -> None:
    text = "".join(f"[{number}.000000] usb 1-1: new device\n" for number in range(5_000))
    lines = read_diagnostic_files([LogStream(text + "[5000.000000] mce: bank 7\n", stream="dmesg")]).node_events
    assert len(lines) == 1_000
    assert lines[-1].text == "mce: bank 7"


def test_memory_near_its_limit_names_node_and_task() -> None:
    case = extract({"kind": "sacct", "tail": SACCT}, status="out_of_memory")
    found = [one for one in case.evidence if one.stream == "sacct"]
    first = found[0]
    assert first.text == "sacct: a task of 812.0 used 63.8 GiB of the 64.0 GiB requested for a node"
    assert (first.node, first.rank) == ("gpu04", 9)
    assert "sacct: 812.0 ended as OUT_OF_MEMORY (exit code 0:125)" in [one.text for one in found]
    assert case.suspect is not None
    assert (case.suspect.rank, case.suspect.node) == (9, "gpu04")


def test_the_exit_code_of_steps_is_named_where_one_failed() -> None:
    text = "JobID|State|ExitCode|DerivedExitCode\n8|FAILED|1:0|0:0\n9|FAILED|1:0|3:0\n"
    found = read_diagnostic_files([LogStream(text, stream="sacct")]).evidence
    assert found is not None
    assert [one.text for one in found.findings] == [
        "sacct: 8 ended as FAILED (exit code 1:0)",
        "sacct: 9 ended as FAILED (exit code 1:0, highest exit code of its steps 3:0)",
    ]


def test_memory_use_of_a_step_that_completed_is_no_beginning() -> None:
    text = "JobID|State|ExitCode|MaxRSS|ReqMem\n9|FAILED|1:0||64G\n9.0|COMPLETED|0:0|66900000K|\n"
    found = read_diagnostic_files([LogStream(text, stream="sacct")]).evidence
    assert found is not None
    assert {one.role for one in found.findings} == {"context"}


def test_ras_names_the_dead_process_and_the_missing_rank() -> None:
    case = extract({"kind": "nccl_ras", "tail": RAS}, status="hung")
    texts = [one.text for one in case.evidence if one.stream == "nccl_ras"]
    assert texts == [
        "NCCL RAS: process 3487 on node 10.0.0.13 (GPU 5) is considered dead",
        "NCCL RAS: rank 21 of communicator group 0 gave no data",
    ]
    assert case.suspect is not None
    assert case.suspect.rank == 21


def test_ras_as_json_names_the_missing_rank() -> None:
    member = {"rank": 1, "host": "10.0.0.5", "nvml_dev": 1, "status": {"unresponsive": True, "considered_dead": False}}
    tail = json.dumps({"communicators": [{"size": 2, "missing_ranks": [member]}, {"size": 1, "missing_ranks": []}]})
    case = extract({"kind": "nccl_ras", "tail": tail}, status="hung")
    assert case.suspect is not None
    assert (case.suspect.rank, case.suspect.node, case.suspect.gpu) == (1, "10.0.0.5", 1)


def test_ranks_that_lag_in_one_snapshot_are_no_beginning() -> None:
    text = (
        "Communicators...\n#0-0 (27a0) MISMATCH\n  Communicator ranks have different collective operation counts\n"
        "  3 ranks have launched up to operation 6650\n  1 ranks have launched up to operation 6649\n"
        "  Rank 2 -- GPU 2 managed by process 4830 on node 10.0.0.10\n"
    )
    found = read_diagnostic_files([LogStream(text, stream="nccl_ras")]).evidence
    assert found is not None
    assert [(one.role, one.text) for one in found.findings] == [
        ("cascade", "NCCL RAS: rank 2 launched up to operation 6649, others up to 6650")
    ]


def test_the_rank_that_is_elsewhere_while_the_others_wait_is_the_suspect() -> None:
    dumps = [{"kind": "py_spy", "rank": rank, "tail": BUSY if rank == 2 else WAITING} for rank in range(4)]
    case = extract(*dumps, status="hung")
    first = next(one for one in case.evidence if one.stream == "py_spy")
    place = "read (tarfile.py:690), called by next_shard (data/shards.py:31)"
    assert first.text in {
        f"py-spy: rank 2 is in {place}; 3 other ranks wait in all_reduce",
        "py-spy: rank 2 is in read (tarfile.py:690); 3 other ranks wait in all_reduce",
    }
    assert case.suspect is not None
    assert case.suspect.rank == 2


def test_dumps_of_unknown_ranks_are_all_compared() -> None:
    dumps = [LogStream(BUSY if number == 2 else WAITING, stream="py_spy") for number in range(4)]
    found = read_diagnostic_files(dumps).evidence
    assert found is not None
    assert [one.text.partition(" in ")[0] for one in found.findings] == ["py-spy: a process of unknown rank is"]
    assert "3 other ranks wait in all_reduce" in found.findings[0].text


def test_frames_of_libraries_hide_no_wait() -> None:
    native = "".join(f"    wait{number} (libtorch_cuda.so)\n" for number in range(9))
    dumps = []
    for rank in range(4):
        head, thread, frames = (BUSY if rank == 2 else WAITING).partition('"MainThread"\n')
        dumps.append({"kind": "py_spy", "rank": rank, "tail": head + thread + native + frames})
    case = extract(*dumps, status="hung")
    first = next(one for one in case.evidence if one.stream == "py_spy")
    assert (first.role, first.rank) == ("initiating", 2)
    assert "called by" in first.text


def test_a_line_of_spaces_is_read_at_once() -> None:
    began = time.process_time()
    read_diagnostic_files([LogStream("Thread 1 (idle)\n" + " " * 1_000_000, stream="py_spy")])
    assert time.process_time() - began < 1


def test_a_step_that_still_ends_is_no_failure() -> None:
    states = ("COMPLETING", "SUSPENDED", "RUNNING", "TIMEOUT")
    rows = "".join(f"9.{number}|{state}|0:0\n" for number, state in enumerate(states))
    found = read_diagnostic_files([LogStream(f"JobID|State|ExitCode\n{rows}", stream="sacct")]).evidence
    assert found is not None
    assert [one.text for one in found.findings] == ["sacct: 9.3 ended as TIMEOUT (exit code 0:0)"]


def test_stacks_of_ranks_that_all_wait_name_no_rank() -> None:
    case = extract(*({"kind": "py_spy", "rank": rank, "tail": WAITING} for rank in range(4)), status="hung")
    found = [one for one in case.evidence if one.stream == "py_spy"]
    assert [one.role for one in found] == ["context"]
    assert found[0].text.startswith("py-spy: 4 ranks are in all_reduce")
    assert case.suspect is None or case.suspect.rank is None


@pytest.mark.parametrize("kind", DIAGNOSTIC_KINDS)
@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "null", '{"message": {"extraInfo": 7}}', "x" * 100_000, "[" * 100_000]
)
def test_text_of_another_format_is_reported_as_missing(kind: str, text: str) -> None:
    case = extract({"kind": kind, "tail": text})
    assert any(
        one.startswith(("torchrun", "nvidia-smi", "sacct", "NCCL RAS", "py-spy", "dmesg")) for one in case.missing
    )
    assert all(one.stream != kind for one in case.evidence)


def test_a_file_that_cannot_be_read_is_missing() -> None:
    case = extract({"kind": "py_spy", "rank": 3, "uri": "/tmp/stack"})
    assert "py-spy dump of rank 3: the log was not given inline" in case.missing


@given(
    kind=st.sampled_from(DIAGNOSTIC_KINDS),
    source=st.sampled_from([GPU, RAS, SACCT, WAITING, BUSY, '{"message": {"message": "E: x", "extraInfo": {}}}']),
    cut=st.integers(0, 900),
    noise=st.text(max_size=40),
)
def test_damaged_files_never_raise(kind: str, source: str, cut: int, noise: str) -> None:
    found = read_diagnostic_files([LogStream(source[:cut] + noise + source[cut:], rank=1, stream=kind)])
    assert found.evidence is not None
    assert all(len(one.text) <= 400 for one in found.evidence.findings)
