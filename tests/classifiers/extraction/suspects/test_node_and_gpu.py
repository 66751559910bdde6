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
