"""A report of a lost node names the node that is the suspect, not the one whose log has the report."""

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase, Suspect
from classifiers.extraction.suspects.node_and_gpu import lost_node
from tests.classifiers.packaged_catalogue import EXTRACTOR

NODES = ("qa1", "qa2", "qa3")
STEPS = "".join(f"step {number} loss 1.5\n" for number in range(30))
PEER = "ncclRemoteError: A call failed\nsocketProgress: Connection closed by remote peer {}\n"


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("srun: error: Node failure on qa2", "qa2"),
        ("slurmctld: error: Nodes qa3 not responding, setting DOWN", "qa3"),
        ("slurmctld: error: Nodes qa[1-3] not responding", None),
        ("host qa2.lab.example is unreachable", "qa2"),
        ("srun: error: Task launch for StepId=8.0 failed on node qa2: Unable to connect", "qa2"),
        ("node qa2 is up", None),
        ("node qa9 is down", None),
    ],
)
def test_the_node_is_read_from_the_report(line: str, node: str | None) -> None:
    assert lost_node(line, NODES) == node


def suspect(*logs: LogStream, events: tuple[NodeEvent, ...] = ()) -> Suspect | None:
    job = JobFacts(status="failed", nodes=NODES, gpus=24)
    return EXTRACTOR.extract(RawCase(job=job, streams=logs, node_events=events)).case.suspect


def test_the_daemon_that_reports_the_failure_of_another_node_is_alive() -> None:
    report = "slurmstepd: error: *** STEP 8.0 ON qa1 CANCELLED AT 2026-11-20T10:00:00 DUE TO NODE FAILURE ***\n"
    found = suspect(LogStream(STEPS + report + "srun: error: Node failure on qa3\n", node="qa1"))
    assert found is not None
    assert found.node == "qa3"
    alone = suspect(LogStream(STEPS + report, node="qa1"))
    assert alone is None or alone.node is None


def test_an_event_of_a_controller_names_the_suspect() -> None:
    event = NodeEvent("error: Nodes qa2 not responding, setting DOWN", None, "ctl", "slurmctld")
    found = suspect(LogStream(STEPS + PEER.format("10.0.0.9<511>"), rank=0, node="qa1"), events=(event,))
    assert found is not None
    assert found.node == "qa2"


@pytest.mark.parametrize(
    ("peer", "own", "node"),
    [
        ("qa3<511>", "", "qa3"),
        ("10.4.0.3<511>", "qa3:9:9 [0] NCCL INFO Bootstrap : Using eth1:10.4.0.3<0>\n", "qa3"),
        ("10.4.0.9<511>", "", None),
    ],
)
def test_processes_that_lost_another_one_suspect_its_node_and_never_their_own(
    peer: str, own: str, node: str | None
) -> None:
    logs = [LogStream(STEPS + PEER.format(peer), rank=rank, node=where) for rank, where in ((0, "qa1"), (8, "qa2"))]
    found = suspect(*logs, LogStream(own + STEPS, rank=16, node="qa3"))
    assert found is not None
    assert found.node in {node, "qa3"}  # the third node is silent, which may tell as well
    two = suspect(*logs)
    assert two is None or two.node == (node if not own else None)


def test_a_killed_process_without_a_log_is_one_of_the_node_whose_launcher_reports_it() -> None:
    launcher = LogStream("ERROR:launcher:Rank 9 crashed with exit code -9.\n", rank=8, node="n2")
    other = LogStream("ERROR:launcher:Global rank 8 (PID 4) exited with code 1\n", rank=0, node="n1")
    text = "Out of memory: Killed process 88 (python3) total-vm:9kB, anon-rss:8kB"
    found = suspect(launcher, other, events=(NodeEvent(text, None, "n2", "kernel"),))
    assert found is not None
    assert (found.rank, found.node) == (9, "n2")
