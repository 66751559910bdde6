"""A rank that only passes on that another rank gave up waiting began nothing."""

from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import Case
from tests.classifiers.packaged_catalogue import EXTRACTOR

WATCHDOG = (
    "[rank9]:[E1120 03:41:11.061727749 ProcessGroupNCCL.cpp:683] [PG ID 0 PG GUID 0(default_pg) Rank 9] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80,"
    " Timeout(ms)=600000) ran for 600096 milliseconds before timing out.\n"
)


def relayed(rank: int, words: str = "Observed flight recorder dump signal from another rank via TCPStore.") -> str:
    place = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    return f"[rank{rank}]:[E1120 03:41:11.562341000 ProcessGroupNCCL.cpp:1377] {place} {words}\n"


def extract(*logs: dict[str, Any]) -> Case:
    event = {"status": "failed", "exit_code": 134, "nodes": ["gpu03", "gpu04"], "gpus": 16, "logs": list(logs)}
    return EXTRACTOR.extract(build_case(event)).case


@pytest.mark.parametrize(
    "logs",
    [
        [{"rank": 3, "tail": relayed(3)}, {"rank": 9, "tail": WATCHDOG}],
        [{"tail": relayed(3) + relayed(4) + WATCHDOG}],
        [
            {
                "tail": relayed(3, "Received a dump signal due to a collective timeout from rank 9 and we will try")
                + WATCHDOG
            }
        ],
    ],
)
def test_the_rank_that_waited_in_vain_leads(logs: list[dict[str, Any]]) -> None:
    case = extract(*logs)
    assert [(one.rank, "Watchdog caught" in one.text) for one in case.evidence if one.role == "initiating"] == [
        (9, True)
    ]
    assert case.suspect is not None
    assert case.suspect.rank == 9


def test_a_rank_that_only_relays_it_is_no_suspect() -> None:
    assert extract({"tail": "step 100 loss 2.1\n" + relayed(3)}).suspect is None


def test_a_rank_that_tells_others_is_one() -> None:
    own = relayed(5, "Received a dump signal due to a collective timeout from this local rank and we will try to dump")
    case = extract({"tail": relayed(3) + own})
    assert case.suspect is not None
    assert case.suspect.rank == 5
