"""A rank whose stack shows it at work of its own keeps the others waiting."""

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

WAITED = (
    "[rank0]:[E1201 08:00:00.100000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout"
    ": WorkNCCL(SeqNum=71, OpType=ALLGATHER, NumelIn=8, NumelOut=64, Timeout(ms)=600000) ran for 600010 milliseconds.\n"
)
STACK = (
    "step 7 loss 1.0\nTimeout (0:08:00)!\nThread 0x00007f0000aa1740 (most recent call first):\n"
    '  File "/opt/team/{file}", line 12 in {name}\n  File "/opt/team/run.py", line 80 in main\n'
)


def leading(file: str, name: str, waiting: str = WAITED) -> str | None:
    raw = RawCase(
        job=JobFacts(status="failed", nodes=("d1", "d2")),
        streams=(
            LogStream(waiting, rank=0, node="d1"),
            LogStream(STACK.format(file=file, name=name), rank=9, node="d2"),
        ),
    )
    leads = [item for item in EXTRACTOR.extract(raw).items if item.role == "initiating"]
    return next((hit.id for item in leads[:1] for hit in item.hits), None)


def test_a_rank_that_computes_while_others_wait_is_where_the_failure_began() -> None:
    assert leading("cleanse.py", "split_sentences") == "wordings.busy-elsewhere"


def test_a_rank_that_waits_itself_or_reads_began_nothing() -> None:
    assert leading("torch/distributed/distributed_c10d.py", "all_gather") != "wordings.busy-elsewhere"
    assert leading("shards.py", "read") != "wordings.busy-elsewhere"


def test_a_stack_without_others_that_wait_says_nothing() -> None:
    assert leading("cleanse.py", "split_sentences", "step 8 loss 1.0\n") != "wordings.busy-elsewhere"


def test_stacks_of_py_spy_are_read_too() -> None:
    stack = 'step 7\nThread 812 (active): "MainThread"\n    merge (tokens.py:40)\n    main (run.py:80)\n'
    raw = RawCase(
        job=JobFacts(status="failed"),
        streams=(LogStream(WAITED, rank=0, node="d1"), LogStream(stack, rank=9, node="d2")),
    )
    first = next(item for item in EXTRACTOR.extract(raw).items if item.role == "initiating")
    assert first.rank == 9
