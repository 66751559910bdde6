"""Compares the dumps of several ranks: the collectives that the ranks of a group did not complete together.

Of each process group only the first collective that shows a problem counts: later ones are its consequences. A rank
that waits in a collective of another group is held up itself, so a rank that waits nowhere is named before it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from classifiers.contracts import CollectiveFailure, CollectiveProblem
from classifiers.flight_recorder.dump import DEFAULT_GROUP, Collective, RankDump

# Operations whose input has one size on all ranks; `_base` are the names of NCCL for those into one tensor.
_EQUAL_SIZES: Final = re.compile(
    r"all_?reduce|broadcast|reduce(?!_scatter)|_?reduce_scatter_(?:tensor|base)|_?all_?gather_(?:into_tensor|base)"
)
_UNEQUAL_TYPES: Final = ("gather", "scatter", "all_to_all", "alltoall", "barrier")  # some ranks may give no input
_SHOWN_RANKS: Final = 8
_NS: Final = 1e9
_DIFFERENCES: Final[Mapping[CollectiveProblem, str]] = {
    "mismatched_operations": "another operation",
    "mismatched_types": "other data types",
    "mismatched_sizes": "other sizes",
}

_Joined = Mapping[int, Collective]


def find_collective_failures(dumps: Mapping[int, RankDump]) -> tuple[CollectiveFailure, ...]:
    """Return at most one failure for each process group, the one that most likely came first at the front.

    Args:
        dumps: the dumps by global rank.
    """
    waiting = {rank for rank, dump in dumps.items() if any(collective.unfinished for collective in dump.collectives)}
    groups: dict[str, dict[int, dict[int, Collective]]] = defaultdict(lambda: defaultdict(dict))
    for rank, dump in dumps.items():
        for collective in dump.collectives:
            groups[collective.group][collective.sequence][rank] = collective
    found = []
    for name, by_sequence in groups.items():
        failure = _first_failure(name, by_sequence, _members(name, by_sequence, dumps), dumps, waiting)
        if failure is not None:
            found.append(failure)
    return tuple(sorted(found, key=lambda problem: (not problem.ranks, _only_held_up(problem, waiting))))


def _members(group: str, by_sequence: Mapping[int, _Joined], dumps: Mapping[int, RankDump]) -> set[int]:
    """The ranks of a group: those that the dumps list, and those that took part.

    Dumps of gloo list the ranks of one group only, under the name of the default one. All ranks are in that.
    """
    members = {rank for joined in by_sequence.values() for rank in joined}
    members.update(next((dump.groups[group] for dump in dumps.values() if group in dump.groups), ()))
    return members | set(dumps) if group == DEFAULT_GROUP else members


def _only_held_up(failure: CollectiveFailure, waiting: set[int]) -> bool:
    """Whether the ranks of a failure only did not come because they wait in another group."""
    return failure.problem == "missing_ranks" and waiting >= set(failure.ranks)


def _first_failure(
    group: str, by_sequence: Mapping[int, _Joined], members: set[int], dumps: Mapping[int, RankDump], waiting: set[int]
) -> CollectiveFailure | None:
    last = {rank: max((n for n, joined in by_sequence.items() if rank in joined), default=0) for rank in members}
    for sequence in sorted(by_sequence):
        joined = by_sequence[sequence]
        failure = _mismatch(group, sequence, joined)
        if failure is not None:
            return failure
        if not any(collective.unfinished for collective in joined.values()):
            continue
        behind = {rank for rank in members & set(dumps) if last[rank] < sequence}
        silent = members - set(dumps)
        if behind:
            return _failure("missing_ranks", group, sequence, joined, behind - waiting or behind)
        if silent and len(silent) * 2 <= len(members):
            return _failure("no_dump", group, sequence, joined, silent)
        return _failure("incomplete", group, sequence, joined, set())
    return None


def _mismatch(group: str, sequence: int, joined: _Joined) -> CollectiveFailure | None:
    """The mismatch of one collective: different operations, types or sizes."""
    one = next(iter(joined.values()))
    if (differing := _differing_ranks(joined, lambda each: each.operation)) is not None:
        return _failure("mismatched_operations", group, sequence, joined, differing)
    if not any(each.unfinished for each in joined.values()):
        return None
    equal = _EQUAL_SIZES.match(one.operation) is not None
    if equal or not any(word in one.operation for word in _UNEQUAL_TYPES):
        differing = _differing_ranks(joined, lambda each: each.dtypes)
        if differing is not None:
            return _failure("mismatched_types", group, sequence, joined, differing)
    if equal:
        differing = _differing_ranks(joined, lambda each: each.sizes)
        if differing is not None:
            return _failure("mismatched_sizes", group, sequence, joined, differing)
    return None


def _differing_ranks(joined: _Joined, value: Callable[[Collective], Hashable]) -> set[int] | None:
    """The ranks that differ from the majority; empty where no value has one, None where all agree."""
    counts = Counter(value(collective) for collective in joined.values())
    if len(counts) == 1:
        return None
    (usual, most), (_, second) = counts.most_common(2)
    return {rank for rank, one in joined.items() if value(one) != usual} if most > second else set()


def _failure(
    problem: CollectiveProblem, group: str, sequence: int, joined: _Joined, ranks: set[int]
) -> CollectiveFailure:
    times = {rank: one.created_ns for rank, one in joined.items() if one.created_ns}
    last = max(times, key=lambda rank: times[rank]) if len(times) > 1 else None
    operation = Counter(one.operation for rank, one in joined.items() if rank not in ranks or problem == "no_dump")
    name = operation.most_common(1)[0][0] if operation else next(iter(joined.values())).operation
    named = tuple(sorted(ranks))
    what = f"{name} {sequence} of process group {group}"
    others = tuple(sorted(set(joined) - ranks))
    return CollectiveFailure(
        problem=problem,
        group=group,
        sequence=sequence,
        operation=name,
        ranks=named,
        waiting=tuple(sorted(rank for rank, one in joined.items() if one.unfinished)),
        text=f"Flight Recorder: {_sentence(problem, what, joined, named, others)}{_lateness(problem, last, times)}",
    )


def _sentence(
    problem: CollectiveProblem, what: str, joined: _Joined, named: Sequence[int], others: Sequence[int]
) -> str:
    if problem == "missing_ranks":
        return f"{_list(named)} did not join {what}, {_list(others)} did"
    if problem == "no_dump":
        return f"{_list(named)} left no dump, {_list(others)} did not complete {what}"
    if problem == "incomplete":
        return f"{what} was joined by {_list(others)} and not completed"
    words = _DIFFERENCES[problem]
    if not named:
        values = " / ".join(sorted({_value(problem, collective) for collective in joined.values()}))
        return f"the ranks do not agree in {what}: {values}"
    compared = f"{_value(problem, joined[named[0]])} instead of {_value(problem, joined[others[0]])}"
    verb = "called" if problem == "mismatched_operations" else "used"
    return f"{_list(named)} {verb} {words} than {_list(others)} in {what}: {compared}"


def _value(problem: CollectiveProblem, one: Collective) -> str:
    """What differs between the ranks, of one of them."""
    if problem == "mismatched_types":
        return ", ".join(one.dtypes)
    return ", ".join(map(str, one.sizes)) if problem == "mismatched_sizes" else one.operation


def _lateness(problem: CollectiveProblem, last: int | None, times: Mapping[int, int]) -> str:
    """Who joined last, where all ranks did."""
    if problem != "incomplete" or last is None:
        return ""
    return f"; rank {last} joined last, {(times[last] - min(times.values())) / _NS:.1f} s after the first"


def _list(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN_RANKS]))
    more = f" and {len(ranks) - _SHOWN_RANKS} more" if len(ranks) > _SHOWN_RANKS else ""
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}{more}"
