"""The Flight Recorder dump of one rank: read from JSON or a pickle, and written as short JSON text.

The fields are those of dumps of version 2 (PyTorch 2.4 and newer): `entries`, `pg_config` and `pg_status`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from classifiers.flight_recorder.plain_pickle import PickleRefused, load_plain_pickle

MOST_BYTES: Final = 8 * 1024 * 1024  # of one dump; the recorder's ring buffer is smaller with usual settings
_KEPT_ENTRIES: Final = 300  # at most 64 KiB of text (judgement)
_KEPT_OF_GROUP: Final = 8  # at least, of a dump of many groups
_KEPT_BEFORE: Final = 4  # the first unfinished one of a group
_MOST_RANKS: Final = 100_000
_MOST_RANKS_OF_GROUPS: Final = 200_000  # of all groups together: a pickle may name one list thousands of times
_MOST_ENTRIES: Final = 20_000  # the last ones; the recorder keeps 2,000 with usual settings
_MOST_TENSORS: Final = 16  # of one entry
_NAME_CHARS: Final = 100
_NUMBER_CHARS: Final = 19  # digits; larger numbers are unset counters
DEFAULT_GROUP: Final = "default"
_DEFAULT_GROUPS: Final = frozenset({"", "0", "default_pg"})
_PICKLE_START: Final = b"\x80"


class DumpUnreadable(ValueError):
    """The data are no Flight Recorder dump; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective as one rank recorded it.

    Attributes:
        group: the name of its process group.
        sequence: its number in the group, from 1.
        operation: its name, without the backend.
        sizes: the number of elements of each input tensor.
        dtypes: the types of the input tensors.
        unfinished: whether the rank had not completed it.
        created_ns: when the rank called it, in nanoseconds since 1970, 0 if unknown.
    """

    group: str
    sequence: int
    operation: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    unfinished: bool
    created_ns: int


@dataclass(frozen=True, slots=True)
class RankDump:
    """The dump of one rank: its collectives in order, and the ranks of each process group by name."""

    collectives: tuple[Collective, ...]
    groups: Mapping[str, tuple[int, ...]]


def read_dump(data: bytes) -> RankDump:
    """Read the JSON or the pickled form of a dump.

    Raises:
        DumpUnreadable: too large, damaged, or not a dump.
    """
    if len(data) > MOST_BYTES:
        raise DumpUnreadable(f"larger than {MOST_BYTES // 1024 // 1024} MiB")
    try:
        if data.startswith(_PICKLE_START):
            return _dump(load_plain_pickle(data))
        return _dump(json.loads(data))
    except DumpUnreadable:
        raise
    except PickleRefused as refused:
        raise DumpUnreadable(f"the pickle is refused: {refused}") from None
    except (ValueError, RecursionError):
        raise DumpUnreadable("neither JSON nor a pickle of a Flight Recorder dump") from None


def to_text(dump: RankDump) -> str:
    """Return the last collectives of a dump, and those around the unfinished ones, as JSON that `read_dump` reads."""
    config = {name: {"name": name, "ranks": json.dumps(ranks)} for name, ranks in dump.groups.items()}
    entries = [
        {
            "process_group": [one.group, ""],
            "collective_seq_id": one.sequence,
            "profiling_name": one.operation,
            "input_sizes": [[size] for size in one.sizes],
            "input_dtypes": one.dtypes,
            "state": "scheduled" if one.unfinished else "completed",
            "time_created_ns": one.created_ns,
        }
        for one in _kept(dump.collectives)
    ]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    return f'{{"pg_config": {json.dumps(config)},\n"entries": [\n{lines}]}}\n'


def _kept(collectives: Sequence[Collective]) -> list[Collective]:
    """Of each group an equal share: a busy group does not push out another, in which the rank waits."""
    if len(collectives) <= _KEPT_ENTRIES:
        return list(collectives)
    places: dict[str, list[int]] = {}
    for place, one in enumerate(collectives):
        places.setdefault(one.group, []).append(place)
    kept: set[int] = set()
    left = _KEPT_ENTRIES
    for number, of_group in enumerate(sorted(places.values(), key=len)):
        share = min(max(left // (len(places) - number), _KEPT_OF_GROUP), len(of_group))
        waiting = next((i for i, place in enumerate(of_group) if collectives[place].unfinished), len(of_group))
        begin = max(waiting - _KEPT_BEFORE, 0)
        if begin < len(of_group) - share:  # half of the share for the first one that the rank waits in
            kept.update(of_group[begin : begin + share // 2], of_group[len(of_group) - (share - share // 2) :])
        else:
            kept.update(of_group[len(of_group) - share :])
        left -= share
    return [collectives[place] for place in sorted(kept)]


def _dump(value: Any) -> RankDump:
    entries = value.get("entries") if isinstance(value, dict) else None
    if entries is None and isinstance(value, dict) and isinstance(value.get("pg_status"), dict):
        entries = ()  # the JSON form of a rank that recorded no collective
    if not isinstance(entries, list | tuple):
        raise DumpUnreadable("not a Flight Recorder dump: it has no list of entries")
    if entries and not any(isinstance(entry, dict) and "collective_seq_id" in entry for entry in entries):
        raise DumpUnreadable(f"version {_text(value.get('version')) or '?'}: no entry has a collective_seq_id")
    completed = {
        _text(name): _completed(status.get("last_completed_collective"))
        for name, status in _items(value.get("pg_status"))
        if isinstance(status, dict)
    }
    found = (_collective(entry, completed) for entry in entries[-_MOST_ENTRIES:] if isinstance(entry, dict))
    return RankDump(
        collectives=tuple(collective for collective in found if collective is not None),
        groups=_groups(value.get("pg_config")),
    )


def _groups(config: Any) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    left = _MOST_RANKS_OF_GROUPS
    for name, group in _items(config):
        ranks = _ranks(group.get("ranks")) if isinstance(group, dict) else ()
        left -= len(ranks)
        if left < 0:
            break
        if ranks:
            found[_group_name(_text(name))] = ranks
    return found


def _collective(entry: dict[Any, Any], completed: Mapping[str, int]) -> Collective | None:
    sequence = _whole(entry.get("collective_seq_id"), 0)
    if entry.get("is_p2p") is True or sequence <= 0:
        return None
    group = entry.get("process_group")
    name = _text(group[0]) if isinstance(group, list | tuple) and group else ""
    operation = _text(entry.get("profiling_name"))
    finished = (
        entry.get("state") == "completed"
        # Of NCCL, what is retired and not completed has timed out (FlightRecorder.hpp); gloo has no states.
        or (entry.get("retired") is True and not operation.startswith("nccl:"))
        or sequence <= completed.get(_text(entry.get("pg_id", name)), -1)
    )
    return Collective(
        group=_group_name(name),
        sequence=sequence,
        operation=(operation or "collective").rpartition(":")[2],
        sizes=tuple(_elements(shape) for shape in _first(entry.get("input_sizes"), _MOST_TENSORS)),
        dtypes=tuple(_text(dtype) for dtype in _first(entry.get("input_dtypes"), _MOST_TENSORS)),
        unfinished=not finished,
        created_ns=_whole(entry.get("time_created_ns"), 0),
    )


def _group_name(name: str) -> str:
    """The name of a process group; the default one has several."""
    return DEFAULT_GROUP if name in _DEFAULT_GROUPS else name


def _text(value: Any) -> str:
    """A name of one line; empty for values that are no names: the text of nested ones may be longer than any memory."""
    if not isinstance(value, str | int):
        return ""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value)[:_NAME_CHARS])


def _ranks(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    return tuple(rank for rank in _first(value, _MOST_RANKS) if _whole(rank, -1) >= 0)


def _elements(shape: Any) -> int:
    count = 1
    for size in _first(shape, _MOST_TENSORS):
        count = min(count * max(_whole(size, 0), 0), 1 << 62)
    return count


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items())[:_MOST_RANKS] if isinstance(value, dict) else []


def _first(value: Any, most: int) -> Sequence[Any]:
    return value[:most] if isinstance(value, list | tuple) else ()


def _completed(value: Any) -> int:
    """The number of the last completed collective, -1 if unknown; the JSON form has it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _NUMBER_CHARS:
        return int(value)
    return _whole(value, -1)


def _whole(value: Any, otherwise: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return value
    return otherwise
