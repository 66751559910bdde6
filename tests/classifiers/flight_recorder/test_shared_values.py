"""A small pickle may name one value thousands of times: what is made of it stays small."""

import pickle
from typing import Any

import pytest

from classifiers.flight_recorder.dump import read_dump, to_text

ENTRY: dict[str, Any] = {
    "collective_seq_id": 1,
    "process_group": ["g", "dp"],
    "profiling_name": "nccl:all_reduce",
    "input_sizes": [[8]],
    "input_dtypes": ["Float"],
    "state": "scheduled",
    "time_created_ns": 1,
}
RANKS = list(range(20_000))


@pytest.mark.parametrize("ranks", [RANKS, str(RANKS)], ids=["list", "text"])
def test_the_ranks_of_many_groups_are_read_up_to_a_limit(ranks: Any) -> None:
    """2,000 groups in 170 KB took 2.3 GB of memory."""
    config = {str(number): {"ranks": ranks} for number in range(200)}
    dump = read_dump(pickle.dumps({"entries": [ENTRY], "pg_config": config}, protocol=2))
    assert dump.groups["default"] == tuple(RANKS)
    assert len(dump.groups) == 10
    assert len(to_text(dump)) < 2_000_000


def test_the_last_entries_are_read_up_to_a_limit() -> None:
    entries = [{**ENTRY, "state": "completed"}] * 60_000 + [{**ENTRY, "collective_seq_id": 2}]
    found = read_dump(pickle.dumps({"entries": entries}, protocol=2)).collectives
    assert len(found) == 20_000
    assert (found[-1].sequence, found[-1].unfinished) == (2, True)


def test_a_long_shape_is_not_copied_for_each_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Long(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("the whole list is read")

    shape = Long([2] * 100)
    entry = {**ENTRY, "input_sizes": Long([shape] * 100)}
    monkeypatch.setattr("classifiers.flight_recorder.dump.load_plain_pickle", lambda _: {"entries": [entry]})
    [found] = read_dump(b"\x80").collectives
    assert found.sizes == (2**16,) * 16
