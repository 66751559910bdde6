import pytest

from classifiers.extraction import process_exits
from classifiers.extraction.ranks import find_missing_ranks


@pytest.mark.parametrize(
    ("line", "rank", "local", "signal", "code"),
    [
        ("E1120 failed (exitcode: -9) local_rank: 3 (pid: 4714) of binary: python", None, 3, 9, -9),
        ("srun: error: gpu018: task 5: Killed", 5, None, 9, None),
        ("srun: error: gpu018: task 2: Segmentation fault (core dumped)", 2, None, 11, None),
        ("srun: error: gpu018: task 0: Exited with exit code 1", 0, None, None, 1),
        (
            "mpirun noticed that process rank 14 with PID 4257 on node gpu018 exited on signal 11 (Segfault).",
            14,
            None,
            11,
            None,
        ),
        ("ERROR:launcher:Rank 21 crashed with exit code -9.", 21, None, 9, -9),
        ("Global rank 5 (PID 912) exited with code 137", 5, None, 9, 137),
        ("[ERROR] ['python', 't.py', '--local_rank=3'] exits with return code = -9", None, 3, 9, -9),
        ("[rank: 2] Child process with PID 4712 terminated with code -7. Forcefully", 2, None, 7, -7),
        (
            "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
            1,
            None,
            9,
            None,
        ),
    ],
)
def test_launcher_reports_give_rank_signal_and_exit_code(
    line: str, rank: int | None, local: int | None, signal: int | None, code: int | None
) -> None:
    [found] = process_exits.find_exits(line)
    assert (found.rank, found.local_rank, found.signal, found.exit_code) == (rank, local, signal, code)


def test_a_rank_that_exited_with_code_0_did_not_fail() -> None:
    assert not process_exits.find_exits("Global rank 5 (PID 912) exited with code 0")


def test_one_line_may_report_several_tasks() -> None:
    assert [one.rank for one in process_exits.find_exits("srun: error: n1: tasks 1,4-6: Terminated")] == [1, 4, 5, 6]


def test_open_mpi_names_the_first_process_on_two_lines() -> None:
    [found] = process_exits.find_exits("  Process name: [[45854,1],7]", "\n  Exit code:    77\n")
    assert (found.rank, found.exit_code, found.reported_first) == (7, 77, True)


@pytest.mark.parametrize(
    "number", ["²", "--9", "9" * 30, "9" * 5_000], ids=("superscript", "signs", "30 digits", "5,000 digits")
)
def test_what_is_no_number_or_too_large_a_one_is_no_rank_and_no_exit_code(number: str) -> None:
    report = "Root Cause (first observed failure):\n  rank      : {} (local_rank: 0)\n  exitcode  : {} (pid: 4711)\n"
    assert process_exits.root_cause_exit(report.format(number, 1), 0) is None
    if len(number) < 1_500:  # characters of a report that are read
        found = process_exits.root_cause_exit(report.format(8, number), 0)
        assert found is not None
        assert (found.rank, found.exit_code) == (8, None)
    for line in (
        "E1120 failed (exitcode: 1) local_rank: {} (pid: 4714) of binary: python",
        "mpirun noticed that process rank {} with PID 4257 on node gpu018 exited on signal 11 (Segfault).",
        "mpirun noticed that process rank 1 with PID 4257 on node gpu018 exited on signal {}",
        "['python', 't.py', '--local_rank=3'] exits with return code = {}",
        "[rank: {}] Child process with PID 4712 terminated with code -7. Forcefully",
        "  Process name: [[45854,1],{}]",
        "Process 3 exit with status code {}",
        "=   EXIT CODE: {}",
        "process 1 terminated with exit code {}",
        "MPI_ABORT due to process rank {}",
        "srun: error: n1: tasks {}: Killed",
    ):
        assert not process_exits.find_exits(line.format(number)), line
    assert find_missing_ranks(f"missing ranks: {number}") == []
    assert find_missing_ranks(f"task lost: /job:worker/replica:0/task:{number}") == []


def test_a_list_of_more_ranks_than_a_job_has_is_cut() -> None:
    assert len(process_exits.parse_ranks(",".join(["0-4000"] * 300))) <= 4_096


def test_the_root_cause_report_of_torch_elastic() -> None:
    text = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-20_03:41:55\n  host      : gpu018.orion\n"
        "  rank      : 8 (local_rank: 0)\n  exitcode  : -11 (pid: 4711)\n  error_file: <N/A>\n"
    )
    found = process_exits.root_cause_exit(text, 0)
    assert found is not None
    assert (found.rank, found.node, found.signal, found.is_violent) == (8, "gpu018.orion", 11, True)
    assert process_exits.root_cause_exit("Root Cause (first observed failure):\n", 0) is None


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("[Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 5000 ms", [2, 3]),
        ("Missing ranks: 1", [1]),
        ("tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:3", [3]),
        ("all ranks are here", []),
    ],
)
def test_ranks_that_others_report_as_missing(line: str, ranks: list[int]) -> None:
    assert find_missing_ranks(line) == ranks


@pytest.mark.parametrize(("code", "signal"), [(137, 9), (-15, 15), (1, None), (None, None), (255, None)])
def test_signals_of_exit_codes(code: int | None, signal: int | None) -> None:
    assert process_exits.signal_of(code) == signal


def test_open_mpi_names_the_first_process_some_lines_below_its_notice() -> None:
    line = "mpirun detected that one or more processes exited with non-zero status, thus causing"
    after = "\nthe job to be terminated. The first process:\n\n  Process name: [[9248,1],3]\n  Exit code:    4\n"
    assert [(one.rank, one.exit_code) for one in process_exits.find_exits(line, after)] == [(3, 4)]


def test_an_mpi_error_gives_the_rank_of_its_process() -> None:
    line = "[gpu4:32050] *** An error occurred in MPI_Send"
    assert [
        one.rank for one in process_exits.find_exits(line, "\n[gpu4:32050] *** reported by process [3970760705,2]\n")
    ] == [2]


def test_a_signal_may_stand_on_the_next_line() -> None:
    line = "prterun noticed that process rank 3 with PID 4123 on node node-b exited on"
    [found] = process_exits.find_exits(line, "\nsignal 11 (Segmentation fault).\n")
    assert (found.rank, found.node, found.signal, found.reported_first) == (3, "node-b", 11, True)


@pytest.mark.parametrize(
    ("notice", "rank", "node", "signal", "code"),
    [
        ("\n=   PID 40321 RUNNING AT gpu-02\n=   EXIT CODE: 9\n", None, "gpu-02", None, 9),
        ("\n=   RANK 5 PID 40321 RUNNING AT node02\n=   KILLED BY SIGNAL: 9 (Killed)\n", 5, "node02", 9, None),
        ("\n=   RANK 2 PID 40321 RUNNING AT node02\n=   EXIT STATUS: 134\n", 2, "node02", 6, 134),
    ],
    ids=("MPICH", "Intel MPI, signal", "Intel MPI, status"),
)
def test_a_bad_termination_names_its_node(
    notice: str, rank: int | None, node: str, signal: int | None, code: int | None
) -> None:
    [found] = process_exits.find_exits("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", notice)
    assert (found.rank, found.node, found.signal, found.exit_code) == (rank, node, signal, code)
