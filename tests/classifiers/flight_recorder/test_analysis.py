from typing import Any

import orjson
import pytest

from classifiers.contracts import CollectiveFailure
from classifiers.flight_recorder.analysis import find_collective_failures
from classifiers.flight_recorder.dump import DumpUnreadable, RankDump, read_dump, to_text

WORLD = {"": {"name": "", "ranks": "[0, 1, 2, 3]"}}


def entry(sequence: int, operation: str = "nccl:all_reduce", **fields: Any) -> dict[str, Any]:
    basic = {"collective_seq_id": sequence, "profiling_name": operation, "process_group": ["0", "default_pg"]}
    shape = {"input_sizes": [[2, 3]], "input_dtypes": ["Float"], "state": "completed"}
    return {**basic, **shape, **fields}


def dump(*entries: dict[str, Any], groups: Any = WORLD) -> RankDump:
    return read_dump(orjson.dumps({"entries": entries, "pg_config": groups}))


def only(dumps: dict[int, RankDump]) -> CollectiveFailure:
    [failure] = find_collective_failures(dumps)
    return failure


def test_ranks_that_completed_everything_show_nothing() -> None:
    assert find_collective_failures({rank: dump(entry(1), entry(2)) for rank in range(4)}) == ()


def test_equal_numbers_of_elements_in_another_shape_are_no_mismatch() -> None:
    dumps = {rank: dump(entry(1, input_sizes=[[6]] if rank else [[2, 3]])) for rank in range(4)}
    assert find_collective_failures(dumps) == ()


def test_an_uneven_gather_is_no_mismatch() -> None:
    dumps = {rank: dump(entry(1, "nccl:gather", input_sizes=[[rank + 1]], state="started")) for rank in range(4)}
    assert only(dumps).problem == "incomplete"


def test_another_data_type_is_found() -> None:
    dumps = {
        rank: dump(entry(1, input_dtypes=["Half" if rank == 1 else "Float"], state="started")) for rank in range(4)
    }
    failure = only(dumps)
    assert (failure.problem, failure.ranks) == ("mismatched_types", (1,))
    assert "Half instead of Float" in failure.text


def test_two_ranks_that_disagree_name_no_rank() -> None:
    operations = {0: "nccl:all_reduce", 1: "nccl:broadcast"}
    groups = {"": {"ranks": "[0, 1]"}}
    failure = only({rank: dump(entry(1, name, state="started"), groups=groups) for rank, name in operations.items()})
    assert (failure.problem, failure.ranks) == ("mismatched_operations", ())
    assert "all_reduce / broadcast" in failure.text


def test_a_collective_that_all_joined_names_who_came_last() -> None:
    second = 1_000_000_000
    dumps = {
        rank: dump(entry(5, state="started", time_created_ns=100 * second + (7 * second if rank == 3 else rank)))
        for rank in range(4)
    }
    failure = only(dumps)
    assert (failure.problem, failure.ranks) == ("incomplete", ())
    assert failure.text.endswith("rank 3 joined last, 7.0 s after the first")


def test_few_dumps_do_not_blame_the_ranks_without_one() -> None:
    assert only({0: dump(entry(1, state="started"))}).problem == "incomplete"


def test_a_rank_that_waits_in_another_group_is_not_named_first() -> None:
    """Rank 1 does not join the group of 0 and 1 because it waits for rank 2 in the group of all."""
    groups = {"": {"ranks": "[0, 1, 2]"}, "7": {"ranks": "[0, 1]"}}
    pair: dict[str, Any] = {"process_group": ["7", "pair"]}
    dumps = {
        0: dump(entry(1, state="started", **pair), groups=groups),
        1: dump(entry(1, state="started"), groups=groups),
        2: dump(groups=groups),
    }
    failures = find_collective_failures(dumps)
    assert [one.ranks for one in failures if one.group == "7"] == [(1,)]
    assert failures[0].group == "default"
    assert failures[0].ranks == (2,)


def test_point_to_point_operations_are_left_out() -> None:
    dumps = {rank: dump(entry(1), entry(9, "nccl:send", is_p2p=True, state="started")) for rank in range(4)}
    assert find_collective_failures(dumps) == ()


def test_entries_of_wrong_types_are_left_out() -> None:
    wrong = {"collective_seq_id": "x", "process_group": 3, "input_sizes": 4, "input_dtypes": None, "state": []}
    found = dump(wrong, {**wrong, "collective_seq_id": 1}, 5, groups=[1])  # type: ignore[arg-type]
    assert [one.sequence for one in found.collectives] == [1]


def test_the_status_of_a_group_is_text_in_the_json_form() -> None:
    """PyTorch's watchdog may not have noted yet that a collective is over."""
    status = {"pg_status": {"0": {"last_enqueued_collective": "2", "last_completed_collective": "1"}}}
    behind = {"entries": [entry(1)], "pg_config": WORLD, **status}
    ahead = {"entries": [entry(1, state="started"), entry(2, state="started")], "pg_config": WORLD, **status}
    dumps = {rank: read_dump(orjson.dumps(behind if rank == 3 else ahead)) for rank in range(4)}
    failure = only(dumps)
    assert (failure.problem, failure.ranks, failure.sequence) == ("missing_ranks", (3,), 2)


def test_the_json_form_of_a_rank_that_recorded_nothing_has_no_entries() -> None:
    nothing = {"version": "2.9", "pg_config": WORLD, "pg_status": {"0": {"last_completed_collective": "-1"}}}
    dumps = {rank: dump(entry(1, state="started")) for rank in range(3)} | {3: read_dump(orjson.dumps(nothing))}
    failure = only(dumps)
    assert (failure.problem, failure.ranks, failure.sequence) == ("missing_ranks", (3,), 1)


def test_a_collective_that_timed_out_is_not_finished() -> None:
    """NCCL's watchdog retires a collective that timed out; one of gloo is retired when it ends."""
    late: dict[str, Any] = {"state": "started", "retired": True}
    dumps = {rank: dump(entry(1), *([] if rank == 2 else [entry(2, **late)])) for rank in range(4)}
    assert (only(dumps).problem, only(dumps).ranks) == ("missing_ranks", (2,))
    assert find_collective_failures({rank: dump(entry(1, "gloo:all_reduce", **late)) for rank in range(4)}) == ()


@pytest.mark.parametrize(
    "operation", ["nccl:_all_gather_base", "nccl:_reduce_scatter_base", "nccl:reduce_scatter_tensor_coalesced"]
)
def test_other_sizes_of_a_sharded_model_are_found(operation: str) -> None:
    dumps = {
        rank: dump(entry(1, operation, input_sizes=[[5 if rank == 1 else 4]], state="started")) for rank in range(4)
    }
    assert (only(dumps).problem, only(dumps).ranks) == ("mismatched_sizes", (1,))


def test_lists_of_other_sizes_are_no_mismatch() -> None:
    dumps = {
        rank: dump(entry(1, "nccl:reduce_scatter", input_sizes=[[rank], [4]], state="started")) for rank in range(4)
    }
    assert only(dumps).problem == "incomplete"


def test_ranks_outside_of_a_group_are_not_named() -> None:
    """Dumps of gloo do not list the ranks of further groups: two ranks use one, and a third never does."""
    pair: dict[str, Any] = {"process_group": ["3", "undefined"]}
    unlisted = {"": {"name": "", "ranks": "[]"}}
    dumps = {
        0: dump(entry(1), groups=unlisted),
        1: dump(entry(1), entry(1, **pair), groups=unlisted),
        2: dump(entry(1), entry(1, **pair), entry(2, state="scheduled", **pair), groups=unlisted),
    }
    assert (only(dumps).problem, only(dumps).group, only(dumps).ranks) == ("missing_ranks", "3", (1,))
    alone = {0: dump(entry(1), groups=unlisted), 1: dump(entry(1, state="started", **pair), groups=unlisted)}
    assert (only(alone).problem, only(alone).ranks) == ("incomplete", ())


def test_all_ranks_are_in_the_default_group() -> None:
    """Dumps of gloo list the ranks of the last group under its name."""
    groups = {"": {"name": "", "ranks": "[2, 3]"}}
    dumps = {rank: dump(*([] if rank == 1 else [entry(1, state="started")]), groups=groups) for rank in range(4)}
    assert (only(dumps).problem, only(dumps).ranks) == ("missing_ranks", (1,))


def test_a_busy_group_does_not_push_out_the_others() -> None:
    """Rank 0 waits in a group and goes on in another, where the others are held up."""
    groups = {"1": {"ranks": "[0, 1, 2, 3]"}, "2": {"ranks": "[0, 1, 2, 3]"}}
    busy = [entry(number, process_group=["2", "tensor"]) for number in range(1, 600)]
    dumps = {}
    for rank in range(4):
        waits = [] if rank == 1 else [entry(8, process_group=["1", "data"], state="started")]
        dumps[rank] = dump(entry(7, process_group=["1", "data"]), *waits, *busy[: 40 * (4 - rank) ** 2], groups=groups)
    stored = {rank: read_dump(to_text(one).encode()) for rank, one in dumps.items()}
    assert (only(stored).group, only(stored).ranks) == ("1", (1,))


def test_the_first_unfinished_collective_is_kept() -> None:
    entries = [entry(number, state="completed" if number < 100 else "scheduled") for number in range(1, 1001)]
    kept = read_dump(to_text(dump(*entries)).encode()).collectives
    assert len(kept) <= 300
    assert {98, 99, 100, 101, 999, 1000} <= {one.sequence for one in kept}


def test_a_dump_of_an_older_version_is_named() -> None:
    older = {"version": "1.5", "entries": [{"seq_id": 1, "pg_id": 0, "profiling_name": "nccl:all_reduce"}]}
    with pytest.raises(DumpUnreadable, match=r"version 1\.5: no entry has a collective_seq_id"):
        read_dump(orjson.dumps(older))
    assert read_dump(orjson.dumps({**older, "entries": []})).collectives == ()


def test_names_are_texts_of_one_line() -> None:
    found = dump(entry(1, "nccl:a\nb", process_group=["x\u2028y", ""], input_dtypes=[["Float"], 7, "Half"]))
    [one] = found.collectives
    assert (one.operation, one.group, one.dtypes) == ("a\ufffdb", "x\ufffdy", ("", "7", "Half"))


def test_the_text_of_a_dump_reads_back() -> None:
    found = dump(entry(1), entry(2, "nccl:broadcast", state="started", time_created_ns=12), groups=WORLD)
    assert read_dump(to_text(found).encode()) == found


def test_the_text_keeps_the_last_collectives() -> None:
    found = read_dump(to_text(dump(*(entry(number) for number in range(1, 1001)))).encode())
    assert [one.sequence for one in found.collectives] == list(range(701, 1001))
