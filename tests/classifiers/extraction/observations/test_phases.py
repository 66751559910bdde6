"""What logs show of reading, saving, and phases without steps."""

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

MISSED = (
    "[2026-12-01 08:00:00,100] [WARNING] [rank_monitor_server] Did not get subsequent heartbeat. Waited 90.0 seconds. "
    "local_rank=0\n[2026-12-01 08:00:01,100] [ERROR] failed (exitcode: -9) local_rank: 0 (pid: 8) of binary: python3\n"
)


def observed(text: str) -> frozenset[str]:
    events = (NodeEvent(text="nfs: server fs1 not responding, still trying"),)
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(text, rank=0),), node_events=events)
    return EXTRACTOR._scan(raw).present


@pytest.mark.parametrize(
    ("line", "values", "is_slow"),
    [
        ("Train: 3 [{n}/900] Loss: 2.1 Time: 1.2s Data: {value:.3f}", [0.02] * 10 + [9.0] * 5, True),
        ("Train: 3 [{n}/900] Loss: 2.1 Time: 1.2s Data: {value:.3f}", [0.02] * 10 + [9.0] + [0.02] * 5, False),
        ("iter {n} data_time: {value:.4f}", [0.001] * 10 + [0.01] * 5, False),  # no step waits for so little
        ("saved checkpoint {n} to /ck in {value:.1f} s", [30.0] * 4 + [200.0] * 4, True),
        ("saved checkpoint {n} to /ck in {value:.1f} s", [30.0] * 8, False),
    ],
)
def test_reading_or_saving_that_takes_several_times_as_long_is_seen(
    line: str, values: list[float], *, is_slow: bool
) -> None:
    text = "\n".join(line.format(n=n, value=value) for n, value in enumerate(values))
    assert ("observation.storage-slowed" in observed(text)) is is_slow


@pytest.mark.parametrize(
    ("counts", "is_alive"), [((3, 4, 5), True), ((4, 4, 4), False), ((), False)], ids=["grows", "stands", "none"]
)
def test_a_process_that_counts_on_until_a_monitor_ends_it_was_alive(counts: tuple[int, ...], *, is_alive: bool) -> None:
    text = "step 80 loss 1.0\n" + "".join(f"evaluating: {count}/90\n" for count in counts) + MISSED
    assert ("observation.alive-when-given-up" in observed(text)) is is_alive


def test_a_process_that_its_launcher_gave_up_was_not_killed_by_others() -> None:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("step 80 loss 1.0\n" + MISSED, rank=0),))
    first = next(item for item in EXTRACTOR.extract(raw).items if item.role == "initiating")
    assert "heartbeat" in first.text


@pytest.mark.parametrize(
    ("bar", "works"),
    [
        ("Packing: 31%|###1      | 310/1000 [14:58<33:10,  0.34it/s]\n", True),
        ("Packing: 31%|###1      | 310/1000 [14:58<33:10,  0.34it/s]", True),  # the next text follows at once
        ("Packing: 31%|###1      | 310/1000 [02:58<06:10,  1.74it/s]\n", False),  # ended long before
        ("Packing: 100%|##########| 1000/1000 [14:58<00:00,  1.11it/s]\n", False),
        ("", False),
    ],
    ids=["advances", "glued", "earlier", "done", "none"],
)
def test_a_bar_that_advanced_as_long_as_the_others_waited_tells_for_whom_they_waited(bar: str, *, works: bool) -> None:
    waited = (
        "[rank1]:[E1201 08:15:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=900000) ran for 900031 "
        "milliseconds before timing out.\n"
    )
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(bar + waited, rank=0),))
    case = EXTRACTOR.extract(raw).case
    assert (
        any(hit.startswith("pytorch.worked-meanwhile") for hit in (one.signature or "" for one in case.evidence))
        is works
    )
