"""The dumps in tests/data/flight_recorder were made by tests/faultlab/flight_recorder.py: rank 2 of 4 is at fault."""

import base64
from pathlib import Path
from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import CollectiveFailure, RawCase
from classifiers.extraction.extractor import Extractor

DUMPS = Path(__file__).parents[2] / "data" / "flight_recorder"
OTHER_OPERATION = (
    "rank 2 called another operation than ranks 0, 1, 3 in all_reduce 7 of process group default: "
    "broadcast instead of all_reduce"
)
FAULTS = {
    "missing_rank": ("missing_ranks", "rank 2 did not join all_reduce 7 of process group default, ranks 0, 1, 3 did"),
    "mismatched_sizes": (
        "mismatched_sizes",
        "rank 2 used other sizes than ranks 0, 1, 3 in all_reduce 7 of process group default: 8 instead of 4",
    ),
    "mismatched_operations": (
        "mismatched_operations",
        OTHER_OPERATION,
    ),
    "dead_rank": (
        "no_dump",
        "rank 2 left no dump, ranks 0, 1, 3 did not complete all_reduce 7 of process group default",
    ),
}
TIMEOUT = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:20345"


def case(fault: str, form: str, *logs: dict[str, Any]) -> RawCase:
    dumps = []
    for path in sorted((DUMPS / fault).glob(f"*.{form}")):
        data = path.read_bytes()
        tail = data.decode() if form == "json" else base64.b64encode(data).decode()
        dumps.append({"rank": int(path.stem.rpartition("_")[2]), "kind": "flight_recorder", "tail": tail})
    return build_case({"status": "failed", "gpus": 4, "logs": [*logs, *dumps]})


def first(raw: RawCase) -> CollectiveFailure:
    assert raw.collectives is not None
    assert not raw.collectives.unreadable
    return raw.collectives.failures[0]


@pytest.mark.parametrize("form", ["json", "pickle"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_failure_and_its_rank_are_found(fault: str, form: str) -> None:
    failure = first(case(fault, form))
    problem, text = FAULTS[fault]
    assert (failure.problem, failure.ranks, failure.sequence) == (problem, (2,), 7)
    assert failure.text == f"Flight Recorder: {text}"


@pytest.mark.parametrize("form", ["json", "pickle"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_rank_is_the_suspect_where_logs_show_only_consequences(fault: str, form: str, extractor: Extractor) -> None:
    logs = [{"rank": rank, "tail": f"step 1\n{TIMEOUT}\n"} for rank in (0, 1, 3)]
    found = extractor.extract(case(fault, form, *logs)).case
    assert found.suspect is not None
    assert found.suspect.rank == 2
    [line] = [one for one in found.evidence if one.stream == "flight_recorder"]
    assert (line.role, line.rank, line.line) == ("initiating", 2, None)


def test_an_own_error_in_a_log_names_the_rank_before_the_dumps(extractor: Extractor) -> None:
    traceback = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nIndexError: out of range\n'
    logs = [{"rank": rank, "tail": traceback if rank == 1 else f"step 1\n{TIMEOUT}\n"} for rank in range(4)]
    found = extractor.extract(case("mismatched_sizes", "json", *logs)).case
    assert found.suspect is not None
    assert found.suspect.rank == 1


def test_dumps_alone_are_no_logs_that_wrote_nothing(extractor: Extractor) -> None:
    found = extractor.extract(case("missing_rank", "json")).case
    assert found.missing == ("no log was given",)


def test_a_dump_that_cannot_be_read_is_listed_as_missing(extractor: Extractor) -> None:
    logs = [{"rank": 0, "kind": "flight_recorder", "tail": '{"entries": 7}'}]
    found = extractor.extract(build_case({"status": "failed", "logs": logs})).case
    assert found.missing[0] == "Flight Recorder dump of rank 0: not a Flight Recorder dump: it has no list of entries"


def test_a_log_of_an_unknown_kind_is_listed_as_missing(extractor: Extractor) -> None:
    found = extractor.extract(
        build_case({"status": "failed", "logs": [{"rank": 0, "kind": "video", "tail": "x"}]})
    ).case
    assert found.missing == ("log of rank 0 (stderr): logs of kind 'video' are not read",)
