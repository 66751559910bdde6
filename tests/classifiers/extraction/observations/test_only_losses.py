"""Where a job shows only that processes lost one another, no log tells what the first one failed of."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

STEPS = "".join(f"step {number} loss 1.5\n" for number in range(30))
LOST = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed\n"
OWN = "ValueError: Input 0 of layer dense is incompatible: expected axis -1 to have value 64\n"
WAITED = "[rank0]:[E1120 10:40:00.0 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout\n"


@pytest.mark.parametrize(
    ("text", "nodes", "only"),
    [
        (STEPS + LOST, ("a1", "a2"), True),
        (STEPS + LOST, ("a1",), False),  # its processes share the node that may have failed
        (LOST, ("a1", "a2"), False),  # a job that never began may be set up wrongly
        (STEPS + OWN + LOST, ("a1", "a2"), False),
        (STEPS + WAITED + LOST, ("a1", "a2"), False),  # mostly a program's fault
    ],
)
def test_it_is_seen_which_cases_show_only_lost_peers(text: str, nodes: tuple[str, ...], *, only: bool) -> None:
    raw = RawCase(job=JobFacts(status="failed", nodes=nodes, gpus=16), streams=(LogStream(text, rank=0, node="a1"),))
    assert EXTRACTOR.extract(raw).only_losses is only
