"""The nodes of a job are also those that its scheduler lists and that have sent no log."""

import pytest

from classifiers.contracts import JobFacts
from classifiers.relevance.own_nodes import own_nodes


@pytest.mark.parametrize(
    ("message", "text", "names"),
    [
        ("JobId=7 NodeList=h[02-04] state FAILED", "", {"h02", "h03", "h04"}),
        (None, "SLURM_JOB_NODELIST=h02,h09\n", {"h02", "h09"}),
        ("JobId=7 ExcNodeList=h02,h08", "", {"h02"}),
        ("JobId=6 NodeList=k[1-4]", "", {"h02"}),  # of another job: it has none of the known ones
        (None, "exec_host: h02/0*16+h05/0*16\n", {"h02", "h05"}),
    ],
)
def test_lists_of_the_scheduler_are_read(message: str | None, text: str, names: set[str]) -> None:
    assert own_nodes(JobFacts("failed", nodes=("h02.lab",), message=message), [text]).names == names


@pytest.mark.parametrize(
    ("gpus", "text", "more"),
    [
        (8, "", False),
        (16, "", True),
        (None, "SLURM_NNODES=3\n", True),
        (None, "torchrun --nnodes=1 x\n", False),
        (None, "--nnodes=1:4\n", False),
    ],
)
def test_it_is_known_whether_a_job_ran_on_more_nodes(gpus: int | None, text: str, *, more: bool) -> None:
    assert own_nodes(JobFacts("failed", nodes=("h02",), gpus=gpus), [text]).more is more
