"""The suspect node is the one of the suspect rank, also where another node's agent speaks first."""

from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import Suspect
from tests.classifiers.packaged_catalogue import EXTRACTOR

HOSTS = ["gpu017", "gpu018"]


def report(rank: int, code: int, at: str, host: str) -> str:
    """What the agent of one node prints of its first failure."""
    agent = "E1120 03:41:58.000000 4000 torch/distributed/elastic/multiprocessing/api.py:869]"
    return (
        f"{agent} failed (exitcode: {code}) local_rank: {rank % 8} (pid: 4711) of binary: /usr/bin/python\n"
        f"{'=' * 60}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n  <NO_OTHER_FAILURES>\n{'-' * 60}\n"
        "Root Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-11-20_{at}\n  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n"
        f"  exitcode  : {code} (pid: 4711)\n  error_file: <N/A>\n  traceback : Signal {-code} received by PID 4711\n"
        f"{'=' * 60}\n"
    )


def suspect(*logs: dict[str, Any]) -> Suspect | None:
    event = {"status": "failed", "exit_code": 1, "nodes": HOSTS, "gpus": 16, "logs": list(logs)}
    return EXTRACTOR.extract(build_case(event)).case.suspect


@pytest.mark.parametrize("turned", [False, True])
def test_each_node_has_an_agent_that_reports_its_own_first_failure(*, turned: bool) -> None:
    lost = "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:34012\n"
    logs = [
        {"node": "gpu017", "tail": lost + report(0, 1, "03:41:57", "gpu017")},
        {"node": "gpu018", "tail": report(9, -9, "03:41:50", "gpu018")},
    ]
    found = suspect(*(logs[::-1] if turned else logs))
    assert found is not None
    assert (found.rank, found.node) == (9, "gpu018")


def test_the_logs_of_ranks_tell_their_nodes() -> None:
    """The launcher's log is on another node than the rank that it names."""
    silent = [{"rank": rank, "node": HOSTS[rank // 8], "tail": "step 100 loss 2.1\n"} for rank in range(16)]
    launcher = {"node": "gpu017", "tail": "[rank: 12] Child process with PID 4712 terminated with code -9.\n"}
    found = suspect(launcher, *silent)
    assert found is not None
    assert (found.rank, found.node) == (12, "gpu018")


def suspect_without_nodes(log: str) -> Suspect | None:
    return EXTRACTOR.extract(build_case({"status": "failed", "logs": [{"tail": log}]})).case.suspect


def test_a_killed_process_without_a_rank_has_the_node_of_the_notice() -> None:
    log = (
        "step 1\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 40321 RUNNING AT gpu-02\n"
        "=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    )
    found = suspect_without_nodes(log)
    assert found is not None
    assert (found.rank, found.node) == (None, "gpu-02")


def test_of_several_hosts_a_local_rank_is_no_rank() -> None:
    """DeepSpeed's launcher of each host, whose lines pdsh marks with the host, knows local ranks only."""
    started = "[2026-11-28 10:00:00,100] [INFO] [launch.py:256:main] process {} spawned with command: ['python']"
    lines = [f"gpu-0{host}: {started.format(5000 + 10 * host + local)}" for host in range(2) for local in range(2)]
    lines += [f"gpu-0{host}: step {step} loss 2.1" for step in range(4) for host in range(2)]
    ended = "[2026-11-28 10:01:14,125] [ERROR] [launch.py:325:sigkill_handler] ['python', '--local_rank=1'] exits with"
    lines += [f"gpu-01: {ended} return code = -9", "pdsh@gpu-00: gpu-01: ssh exited with exit code 247"]
    found = suspect_without_nodes("\n".join(lines) + "\n")
    assert found is not None
    assert (found.rank, found.node) == (None, "gpu-01")


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[vm:17127] [[11801,0],0] ORTE_ERROR_LOG: Out of resource in file show_help.c at line 501", None),
        ("[vm:17127] PRTE ERROR: Out of resource in file show_help.c at line 501", None),
        ("cleaning up", 0),
    ],
)
def test_a_log_of_a_launcher_of_several_processes_is_not_that_of_rank_0(line: str, rank: int | None) -> None:
    found = suspect_without_nodes(f"reading the deck\nFatal: input deck: negative time step -0.5\n{line}\n")
    assert (None if found is None else found.rank) == rank


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times", None),
        ("Lost task 3.0 in stage 1.0 (TID 7) (10.0.0.9 executor 2): java.io.IOException: failed", None),
        ("Task 3 failed with an error", 3),
    ],
)
def test_a_task_of_spark_is_no_rank(line: str, rank: int | None) -> None:
    found = suspect({"tail": f"org.apache.spark.SparkException: {line}\n"})
    assert (None if found is None else found.rank) == rank
