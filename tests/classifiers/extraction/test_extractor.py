from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.case_builder import build_case
from classifiers.contracts import Case, JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

JOB = JobFacts(status="failed", exit_code=1, gpus=4, nodes=("n1",))
TWO = JobFacts(status="failed", exit_code=1, gpus=2)
WATCHDOG = (
    "[rank{0}]:[E1120 03:51:{0:02d}.061727749 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, Timeout(ms)=600000) "
    "ran for 600096 milliseconds before timing out."
)


def extract(*streams: LogStream, job: JobFacts = JOB, events: tuple[NodeEvent, ...] = ()) -> Case:
    return EXTRACTOR.extract(RawCase(job=job, streams=streams, node_events=events)).case


def beginnings(case: Case) -> list[str]:
    return [one.text for one in case.evidence if one.role == "initiating" and one.stream != "scheduler"]


def test_the_exception_comes_first_and_the_launcher_report_follows() -> None:
    text = (
        "step 10 loss 2.0\nTraceback (most recent call last):\n  File \"t.py\", line 3, in main\n    x = batch['y']\n"
        "KeyError: 'y'\nsrun: error: n1: task 0: Exited with exit code 1\n"
    )
    case = extract(LogStream(text=text, rank=0, node="n1"))
    assert beginnings(case)[0] == "KeyError: 'y'"
    assert case.evidence[0].line == 5
    assert case.progress is not None
    assert case.progress.step == 10
    assert all(not one.text.startswith(("File", "x = batch")) for one in case.evidence)


def test_a_report_of_an_aborted_task_comes_after_what_the_processes_say() -> None:
    abort = "srun: error: n1: task 1: Aborted (core dumped)\n"
    assert beginnings(extract(LogStream(text=WATCHDOG.format(1, 9) + "\n" + abort), job=TWO))[0].startswith("[rank1]")
    assert beginnings(extract(LogStream(text=abort), job=TWO)) == [abort.strip()]


def test_an_error_that_points_at_one_above_it_is_its_consequence() -> None:
    text = (
        "(Engine pid=61) ValueError: No memory is left for the cache\n"
        "RuntimeError: the engine could not start. See the root cause above.\n"
    )
    assert beginnings(extract(LogStream(text=text))) == ["(Engine pid=61) ValueError: No memory is left for the cache"]


def test_an_exception_that_lists_those_of_other_ranks_is_their_consequence() -> None:
    text = (
        "CheckpointException: ranks:dict_keys([3])\n"
        "Traceback (most recent call last):\n"
        '  File "save.py", line 3, in write\n'
        "OSError: [Errno 108] Cannot send after transport endpoint shutdown\n"
    )
    assert beginnings(extract(LogStream(text=text)))[0].startswith("OSError: [Errno 108]")


def test_an_event_comes_before_the_line_that_it_explains_whatever_the_clocks_say() -> None:
    start = datetime(2026, 11, 20, 10, tzinfo=UTC)
    job = JobFacts("failed", gpus=8, nodes=("n1",), started_at=start, ended_at=start.replace(minute=11))
    log = "2026-11-20 10:09:59 step 9 loss 2\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    xid = NodeEvent(
        "NVRM: Xid (PCI:0000:b9:00): 94, pid=3, name=python3, Contained", start.replace(minute=10), "n1", "kernel"
    )
    case = extract(LogStream(text=log, rank=2, node="n1"), job=job, events=(xid,))
    assert [one.stream for one in case.evidence[:2]] == ["node", "stderr"]


def test_line_numbers_are_those_of_the_file_when_only_its_end_was_read() -> None:
    case = extract(LogStream(text="KeyError: 'y'\n", rank=0, first_line=5_001))
    assert case.evidence[0].line == 5_001
    gap = LogStream(text="head\n...\nKeyError: 'y'\n", rank=0, windows=((0, 1), (9, 900)))
    assert extract(gap).evidence[0].line == 900


@pytest.mark.parametrize(
    "line",
    [
        "I tensorflow/core/framework/local_rendezvous.cc:421] Aborting with status: OUT_OF_RANGE: End of sequence",
        "2026-11-20 03:51:07.123456: W external/xla/nvptx_compiler.cc:76] Your input ran out of data, End of sequence",
    ],
)
def test_what_tensorflow_logs_below_an_error_begins_nothing_before_the_end_of_a_process(line: str) -> None:
    end = "srun: error: n1: task 3: Killed"
    assert beginnings(extract(LogStream(text=f"step 10 loss 2.0\n{line}\n{end}\n"), job=TWO)) == [end]


def test_the_rank_that_failed_first_is_the_suspect() -> None:
    late = LogStream(
        text="2026-11-20 10:00:09 RuntimeError: mat1 and mat2 shapes cannot be multiplied", rank=0, node="a"
    )
    early = LogStream(
        text="2026-11-20 10:00:02 RuntimeError: mat1 and mat2 shapes cannot be multiplied", rank=3, node="b"
    )
    case = extract(late, early)
    assert case.suspect is not None
    assert (case.suspect.rank, case.suspect.node) == (3, "b")
    assert case.evidence[0].rank == 3


def test_a_rank_that_only_timed_out_is_not_the_suspect() -> None:
    text = "\n".join(
        [
            *(WATCHDOG.format(rank, 78) for rank in (0, 1, 3)),
            "[rank2]: RuntimeError: CUDA error: uncorrectable ECC error",
        ]
    )
    case = extract(LogStream(text=text))
    assert case.suspect is not None
    assert case.suspect.rank == 2
    assert beginnings(case) == ["[rank2]: RuntimeError: CUDA error: uncorrectable ECC error"]


def test_the_silent_rank_of_a_hang_is_the_suspect_and_the_first_complaint_comes_first() -> None:
    streams = [LogStream(text=WATCHDOG.format(rank, 78), rank=rank) for rank in (0, 1, 3)]
    case = extract(*streams, LogStream(text="step 5\n", rank=2))
    assert case.suspect is not None
    assert case.suspect.rank == 2
    assert beginnings(case)[0].startswith("[rank0]")


def test_a_killed_rank_is_the_suspect_when_the_others_lost_their_peer() -> None:
    text = (
        "[rank0]: RuntimeError: [pair.cc:544] Connection closed by peer [10.0.0.1]:4711\n"
        "[rank1]: RuntimeError: [pair.cc:544] Connection closed by peer [10.0.0.1]:4711\n"
        "srun: error: n1: task 2: Killed\n"
    )
    case = extract(LogStream(text=text))
    assert case.suspect is not None
    assert case.suspect.rank == 2


def test_an_error_after_which_the_run_went_on_is_no_beginning() -> None:
    steps = "".join(f"step {number} loss 1.0\n" for number in range(11, 40))
    text = f"step 10 loss 1.0\nRuntimeError: upload failed\n{steps}KeyError: 'y'\n"
    assert beginnings(extract(LogStream(text=text, rank=0)))[0] == "KeyError: 'y'"


def test_a_node_event_is_evidence_with_its_node() -> None:
    event = NodeEvent(
        text="NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus.",
        at=datetime(2026, 11, 20, 10, tzinfo=UTC),
        node="n1",
        source="kernel",
    )
    case = extract(LogStream(text="RuntimeError: CUDA error: unknown error", rank=1), events=(event,))
    assert case.evidence[0].stream == "node"
    assert case.evidence[0].node == "n1"
    assert case.suspect is not None
    assert case.suspect.node == "n1"


def test_unmarked_lines_of_a_shared_log_have_no_rank() -> None:
    text = "[rank3]: step 1\nUnable to determine the device handle: GPU is lost\n[rank3]: CUDA error: unknown error"
    case = extract(LogStream(text=text, rank=0))
    assert case.suspect is not None
    assert case.suspect.rank == 3


def test_missing_logs_are_listed() -> None:
    case = extract(LogStream(text="", rank=1), LogStream(text="", rank=2, missing="no such object"))
    assert case.missing == ("rank 1 wrote nothing to stderr", "log of rank 2 (stderr): no such object")
    assert extract().missing == ("no log was given",)


def test_a_single_line_is_evidence_and_an_empty_log_is_no_error() -> None:
    assert beginnings(extract(LogStream(text="lone words that nobody knows"))) == ["lone words that nobody knows"]
    assert extract(LogStream(text="")).suspect is not None


def test_the_evidence_of_a_long_log_is_limited() -> None:
    errors = (f"2026-11-20 10:00:00 error {number}: failed\n" for number in range(100_000))
    text = "".join(errors) + "KeyError: 'y'\n"
    case = extract(LogStream(text=text, rank=0))
    assert len(case.evidence) <= 24
    assert "KeyError: 'y'" in beginnings(case)


@given(st.lists(st.text(max_size=300), max_size=3), st.text(max_size=80))
def test_any_text_gives_a_case(texts: list[str], reason: str) -> None:
    streams = tuple(LogStream(text=text, rank=rank) for rank, text in enumerate(texts))
    job = JobFacts(status="failed", reason=reason, message=reason)
    case = EXTRACTOR.extract(RawCase(job=job, streams=streams)).case
    assert all(one.text.strip() == one.text for one in case.evidence)


def test_a_traceback_in_one_json_line_is_a_beginning_of_its_rank() -> None:
    text = (
        '{"severity": "INFO", "rank": 2, "message": "step 4"}\n'
        '{"severity": "CRITICAL", "rank": 2, "exception": "Traceback (most recent call last):\\n  File \\"t.py\\", '
        'line 3, in main\\nValueError: no shard for worker"}\n'
    )
    case = extract(LogStream(text))
    assert [(line.rank, line.line) for line in case.evidence if line.role == "initiating"] == [(2, 2)]


def test_the_launcher_report_is_the_beginning_for_a_rank_that_printed_nothing() -> None:
    text = "step 1\nstep 2\nmpirun noticed that process rank 1 with PID 7 on node gpu5 exited on signal 9 (Killed).\n"
    case = extract(LogStream(text))
    assert [line.line for line in case.evidence if line.role == "initiating"] == [3]
    assert case.suspect is not None
    assert case.suspect.rank == 1


def test_frames_of_a_native_stack_are_no_beginning() -> None:
    text = "*** Check failure stack trace: ***\n    @     0x7fb5221040ee  xla::SetError()\nF0101 a.cc:1] Check failed\n"
    case = extract(LogStream(text))
    assert all("0x7fb5" not in line.text for line in case.evidence if line.role == "initiating")


def test_an_overcome_fault_of_a_long_run_is_no_beginning() -> None:
    steps = [f"[rank {rank}] step {step} loss 1.0\n" for step in range(300) for rank in range(4)]
    steps[400] = "[rank 2] upload of metrics failed (attempt 1/5): 503 Server Error: Service Unavailable, retrying\n"
    steps[700] = "[rank 1] ERROR cannot reach the metrics server\n"
    text = "".join(steps) + "[rank 3] ERROR loss is not finite\nFloatingPointError: loss is nan\n"
    case = extract(LogStream(text=text))
    assert "FloatingPointError: loss is nan" in beginnings(case)
    assert all("metrics" not in line for line in beginnings(case))


WAITED = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation"
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:561] Connection closed by peer [10.0.0.1]:4711"


def test_of_two_ranks_the_one_that_does_not_complain_is_the_suspect() -> None:
    case = extract(LogStream(text="step 1\n", rank=0), LogStream(text=f"step 1\n{WAITED}\n", rank=1), job=TWO)
    assert case.suspect is not None
    assert case.suspect.rank == 0


def test_a_late_rank_is_the_suspect_when_the_others_gave_up() -> None:
    streams = [LogStream(text=f"{CLOSED if rank == 2 else WAITED}\n", rank=rank) for rank in range(4)]
    case = extract(*streams)
    assert case.suspect is not None
    assert case.suspect.rank == 2


def exit_report(rank: int, local: int, code: int, second: int) -> str:
    return (
        f"E1120 03:41:{second}.000000 99 torch/distributed/elastic/multiprocessing/api.py:869] failed "
        f"(exitcode: {code}) local_rank: {local} (pid: {4700 + rank}) of binary: python\n"
        "Root Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-11-20_03:41:{second}\n  host      : n{rank // 4}\n"
        f"  rank      : {rank} (local_rank: {local})\n  exitcode  : {code} (pid: {4700 + rank})\n"
    )


def test_the_killed_rank_in_the_reports_of_two_nodes_is_the_suspect_and_its_exit_is_evidence() -> None:
    first = LogStream(text=f"[rank1]: {CLOSED}\n" + exit_report(1, 1, 1, 55), rank=None, node="n0")
    second = LogStream(text=f"[rank4]: {CLOSED}\n" + exit_report(6, 2, -9, 57), rank=None, node="n1")
    case = extract(first, second, job=JobFacts(status="failed", gpus=8, nodes=("n0", "n1")))
    assert case.suspect is not None
    assert case.suspect.rank == 6
    assert any("exitcode: -9" in line for line in beginnings(case))


def test_the_process_that_a_kernel_line_names_gives_the_rank() -> None:
    text = (
        "step 1\n  rank      : 3 (local_rank: 3)\n  exitcode  : -15 (pid: 4711)\n"
        "  rank      : 2 (local_rank: 2)\n  exitcode  : -15 (pid: 4712)\n"
    )
    event = NodeEvent(text="Memory cgroup out of memory: Killed process 4712 (python) total-vm:1kB", node="n7")
    case = extract(LogStream(text=text), events=(event,))
    assert case.suspect is not None
    assert case.suspect.rank == 2


def test_launcher_prefixes_give_the_suspect_and_separate_tracebacks() -> None:
    progress = "".join(f"[{rank}] step {step}\n" for step in range(20) for rank in range(3))
    text = progress + (
        '[1] Traceback (most recent call last):\n[2] step 20\n[1]   File "t.py", line 3, in main\n'
        "[0] step 20\n[1]     x = batch['y']\n[1] KeyError: 'y'\n"
    )
    case = extract(LogStream(text=text, rank=0))
    assert case.suspect is not None
    assert case.suspect.rank == 1
    assert beginnings(case) == ["[1] KeyError: 'y'"]


@pytest.mark.parametrize("stamp", ["", "2024-07-17 07:48:19,000 ", "07:48:19 ", "2024-07-17T07:48:19.123Z stderr F "])
def test_an_exception_below_a_frame_without_its_source_line_is_the_beginning(stamp: str) -> None:
    lines = ['  File "<frozen importlib._bootstrap>", line 241, in _call', "ImportError: libfoo.so.1 is missing"]
    text = "\n".join(stamp + line for line in ["step 1 loss 2.5", *lines])
    assert beginnings(extract(LogStream(text=text), job=JobFacts(status="failed"))) == [stamp + lines[1]]


@pytest.mark.parametrize(("line", "is_used"), [("worker (pid: 5150)", True), ("pid=5150", True), ("step 5150", False)])
def test_a_node_event_of_a_process_that_the_log_names_is_used(line: str, is_used: bool) -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 79, pid=5150, name=python, GPU has fallen off the bus."
    event = {
        "status": "failed",
        "logs": [{"tail": f"started {line}\nKeyError: 'rate'\n"}],
        "node_events": [{"source": "kernel", "text": text}],
    }
    [shown] = [one for one in EXTRACTOR.extract(build_case(event)).case.evidence if one.text == text]
    assert (shown.note is None) is is_used


def test_of_many_node_events_without_a_part_in_the_failure_six_are_shown_the_most_serious_first() -> None:
    mild = [{"source": "dcgm", "text": f"slowdown: GPU {number} throttled, thermal"} for number in range(20)]
    lost = {"source": "kernel", "text": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."}
    event = {"status": "failed", "logs": [{"tail": "KeyError: 'rate'\n"}], "node_events": [*mild, lost]}
    aside = [one for one in EXTRACTOR.extract(build_case(event)).case.evidence if one.note is not None]
    assert len(aside) == 6
    assert aside[0].text == lost["text"]


@pytest.mark.parametrize("stamp", ["2026-11-12 13:15:28,110 ", "[2026-03-04T05:06:07.089Z] ", "Dec 11 12:13:15 ", ""])
def test_the_words_of_a_short_log_are_the_same_on_each_day(stamp: str) -> None:
    lines = ["loading data", "step 1 loss 2.5", "bash: line 3: 4711 Bus error", "srun: error: n1: task 0: Exited"]
    extracted = EXTRACTOR.extract(RawCase(JOB, streams=(LogStream("\n".join(stamp + line for line in lines), rank=0),)))
    assert (*extracted.earlier_lines, *extracted.short_log_lines) == tuple(lines)


def test_times_before_its_lines_make_no_log_long() -> None:
    lines = [f"step {number} loss {number * 7 % 11}.5 and some more words of a line" for number in range(50)]
    stamped = [f"2026-11-12T13:15:28.{number:06d}Z {line}" for number, line in enumerate(lines)]
    for some in (lines, stamped):
        extracted = EXTRACTOR.extract(RawCase(JOB, streams=(LogStream("\n".join([*some, "KeyError: 'y'"])),)))
        assert (*extracted.earlier_lines, *extracted.short_log_lines) == (*lines, "KeyError: 'y'")


def test_an_empty_log_changes_nothing_of_the_other_one() -> None:
    # In a file the place tells the order, whatever the times of buffered lines are.
    text = (
        "2026-11-20 10:00:09 RuntimeError: the shape of the batch does not fit\n"
        "2026-11-20 10:00:01 ValueError: the second error of the same process\n"
    )
    event = NodeEvent("kernel: perf: interrupt took too long", datetime(2026, 11, 20, 9, tzinfo=UTC), "n9", "kernel")
    log = LogStream(text, rank=0)
    for events in ((), (event,)):
        alone = extract(log, events=events)
        assert extract(log, LogStream("", rank=0, stream="stdout"), events=events).evidence == alone.evidence


def test_where_a_dump_shows_the_beginning_the_lines_of_logs_are_those_of_any_run() -> None:
    stack = 'Process 4{}: python t.py\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 4{} (active): "MainThread"\n{}\n'
    waits, reads = "    all_reduce (torch/distributed/distributed_c10d.py:2501)", "    read (data.py:88)"
    dumps = [
        {"rank": rank, "kind": "py_spy", "tail": stack.format(rank, rank, reads if rank == 2 else waits)}
        for rank in range(4)
    ]
    logs = [{"rank": rank, "tail": "step 1 loss 2\n"} for rank in range(4)]
    found = EXTRACTOR.extract(build_case({"status": "failed", "logs": [*logs, *dumps]}))
    assert found.case.evidence[0].text.startswith("py-spy: rank 2 is in read")
    assert found.short_log_lines == ()
    assert EXTRACTOR.extract(build_case({"status": "failed", "logs": logs})).short_log_lines
