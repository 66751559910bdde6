"""A rank that left the usual course of a run before all ranks waited is named by what it did then."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

STEPS = "".join(f"2026-11-20 10:{n:02}:00 step {n} loss 1.5\n" for n in range(20))
TIMEOUT = (
    "[rank{rank}]:[E1120 10:40:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=700, OpType={operation}, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for "
    "600010 milliseconds before timing out.\n"
)


def first_line(left: str, operation: str = "ALLGATHER") -> str:
    """The first line of evidence of two ranks, of which rank 0 prints some lines after its last step."""
    zero = LogStream(STEPS + left + TIMEOUT.format(rank=0, operation=operation), rank=0, node="n1")
    one = LogStream(STEPS + TIMEOUT.format(rank=1, operation="ALLREDUCE"), rank=1, node="n2")
    job = JobFacts(status="failed", gpus=2, nodes=("n1", "n2"))
    return EXTRACTOR.extract(RawCase(job=job, streams=(zero, one))).case.evidence[0].text


VALIDATION = "2026-11-20 10:29:00 new best loss, validating the whole set\n"


@pytest.mark.parametrize(
    "left",
    [
        VALIDATION,
        VALIDATION + "2026-11-20 10:29:30 reading 120 shards\n",
        "n1:70:70 [0] NCCL INFO comm 0x1 rank 0\n" + VALIDATION,
        "    model = wrap(model)\n" + VALIDATION,
        "2026-11-20 10:28:59     model = wrap(model)\n" + VALIDATION,
    ],
)
def test_it_begins_with_what_the_rank_did_after_its_last_progress(left: str) -> None:
    assert first_line(left) == VALIDATION.rstrip()


def test_a_rank_that_only_made_progress_did_nothing_else() -> None:
    assert "Watchdog" in first_line("")


def test_it_is_not_said_of_a_failure_that_begins_with_an_error() -> None:
    assert first_line(VALIDATION + "KeyError: 'loss'\n") == "KeyError: 'loss'"


def test_a_wait_that_is_said_again_and_again_is_no_progress() -> None:
    waits = "".join(f"2026-11-20 10:{30 + n}:00 part 0 of 90, waiting for the others\n" for n in range(6))
    assert first_line(VALIDATION + waits) == VALIDATION.rstrip()
    goes_on = "".join(f"2026-11-20 10:{30 + n}:00 part {n} of 90, waiting for the others\n" for n in range(6))
    assert first_line(VALIDATION + goes_on) != VALIDATION.rstrip()
