"""The chain of a failure: its beginning, what followed from it on how many ranks and when, what explains nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import ChainStep, JobFacts, LogStream, NodeEvent, RawCase
from classifiers.explanation.chain import MOST_EFFECTS, chain_of
from classifiers.extraction.extractor import Extractor

BEGAN = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


def failing(rank: int) -> str:
    steps = "".join(f"2026-11-20 09:59:{second:02d},000 step {second} loss 2.1\n" for second in range(10, 50, 10))
    if rank == 21:
        return (
            steps + "2026-11-20 10:00:00,100 Traceback (most recent call last):\n"
            '  File "train.py", line 15, in step\n'
            "    return table[index]\n"
            "IndexError: list index out of range\n"
        )
    return (
        steps + f"2026-11-20 10:10:0{rank % 8},500 [rank{rank}]:[E] ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE) ran for 600021 milliseconds\n"
    )


def steps(extractor: Extractor, *events: NodeEvent, ranks: int = 32) -> dict[str, list[ChainStep]]:
    streams = tuple(LogStream(failing(rank), rank=rank, node=f"gpu{rank // 8:02d}") for rank in range(ranks))
    job = JobFacts(
        "failed",
        exit_code=1,
        gpus=ranks,
        nodes=tuple(f"gpu{number:02d}" for number in range(-(-ranks // 8))),
        started_at=BEGAN.replace(hour=8),
        ended_at=BEGAN.replace(minute=11),
    )
    found: dict[str, list[ChainStep]] = {}
    for step in chain_of(extractor.extract(RawCase(job, streams, node_events=events))):
        found.setdefault(step.kind, []).append(step)
    return found


def test_the_chain_counts_the_ranks_that_followed_and_says_how_much_later(extractor: Extractor) -> None:
    found = steps(extractor)
    assert [(one.rank, one.node, one.text) for one in found["beginning"]] == [
        (21, "gpu02", "IndexError: list index out of range")
    ]
    watchdog = found["consequence"][0]
    assert (watchdog.ranks, watchdog.title) == (31, "The NCCL watchdog gave up waiting for a collective")
    assert watchdog.after_s == pytest.approx(600.4, abs=1)
    assert found["end"] == [ChainStep(kind="end", text="failed, exit code 1")]
    assert "set_aside" not in found


def test_new_year_does_not_change_the_order_of_a_failure(extractor: Extractor) -> None:
    night = (("2026-11-20 09:59", "2026-12-31 23:59"), ("2026-11-20 10:", "2027-01-01 00:"))
    streams = []
    for rank in range(16, 24):
        text = failing(rank)
        for before, after in night:
            text = text.replace(before, after)
        streams.append(LogStream(text, rank=rank, node="gpu02"))
    end = datetime(2027, 1, 1, 0, 11, tzinfo=UTC)
    job = JobFacts(
        "failed", exit_code=1, gpus=8, nodes=("gpu02",), started_at=end.replace(hour=0, minute=0), ended_at=end
    )
    begins, follows, *_ = chain_of(extractor.extract(RawCase(job, tuple(streams))))
    assert (begins.rank, begins.text) == (21, "IndexError: list index out of range")
    assert follows.after_s == pytest.approx(600.4, abs=1)


def test_an_event_that_explains_nothing_is_counted_with_its_reason(extractor: Extractor) -> None:
    xid = "NVRM: Xid (PCI:0000:b3:00): 79, pid=77, GPU has fallen off the bus."
    found = steps(extractor, NodeEvent(xid, BEGAN, "gpu77", "kernel"), NodeEvent(xid, BEGAN, "gpu78", "kernel"))
    [aside] = found["set_aside"]
    assert (aside.lines, aside.node, aside.text) == (2, "gpu77", xid)
    assert aside.title is not None
    assert found["beginning"][0].rank == 21


def test_kinds_of_consequences_beyond_the_limit_are_counted_together(extractor: Extractor) -> None:
    lines = (
        "gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:3421",
        "[E] ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 6 ms",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "UnavailableError: Collective ops is aborted by: failed to connect to all addresses",
    )
    streams = [LogStream("IndexError: list index out of range\n", rank=0)]
    streams += [LogStream(f"{line}\n", rank=number) for number, line in enumerate(lines, 1)]
    found = chain_of(extractor.extract(RawCase(JobFacts("failed"), tuple(streams))))
    consequences = [one for one in found if one.kind == "consequence"]
    assert len([one for one in consequences if one.title is not None]) <= MOST_EFFECTS
    assert sum(one.lines for one in consequences) + sum(one.lines for one in found if one.kind == "teardown") >= 5


def test_a_job_without_logs_has_an_end_only(extractor: Extractor) -> None:
    found = chain_of(extractor.extract(RawCase(JobFacts("timeout", reason="TimeLimit"))))
    assert [one for one in found if one.kind != "beginning"] == [ChainStep(kind="end", text="timeout, TimeLimit")]


REBOOT = "admin3 : TTY=pts/0 ; PWD=/root ; USER=root ; COMMAND=/usr/bin/systemctl reboot"
LOST = "error: Nodes gpu1 not responding, setting DOWN"
CANCELLED = "slurmstepd: error: *** STEP 4711.0 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 DUE TO NODE FAILURE ***\n"


@pytest.mark.parametrize("log", ["loading the model\n", CANCELLED], ids=["silent log", "message of Slurm in the log"])
@pytest.mark.parametrize(
    ("command", "leads"), [("systemctl reboot", True), ("shutdown -r now", True), ("systemctl status slurmd", False)]
)
def test_the_command_that_restarted_a_node_comes_before_the_messages_of_slurm(
    extractor: Extractor, log: str, command: str, *, leads: bool
) -> None:
    events = (
        NodeEvent(LOST, BEGAN - timedelta(seconds=20), "gpu1", "slurmctld"),
        NodeEvent(REBOOT.replace("systemctl reboot", command), BEGAN - timedelta(seconds=80), "gpu1", "sudo"),
    )
    facts = JobFacts("node_fail", job_id="4711", nodes=("gpu1",), started_at=BEGAN.replace(hour=8), ended_at=BEGAN)
    found = chain_of(extractor.extract(RawCase(facts, (LogStream(log),), node_events=events)))
    first = next(one for one in found if one.kind == "beginning")
    assert (first.title == "An administrator restarted or switched off the node") is leads
    assert (command in (first.text or "")) is leads
