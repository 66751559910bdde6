import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from classifiers.flight_recorder.dump import MOST_BYTES, DumpUnreadable, read_dump, to_text
from classifiers.flight_recorder.plain_pickle import PickleRefused, load_plain_pickle

PLAIN = {"a": [1, 2.5, None, True, "text"], "b": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), "c": {"d": -(2**40)}}


class Command:
    """Runs a function when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_read(protocol: int) -> None:
    assert load_plain_pickle(pickle.dumps(PLAIN, protocol)) == PLAIN


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_a_function_is_refused_and_runs_nothing(protocol: int, tmp_path: Path) -> None:
    hostile = pickle.dumps({"entries": [Command(tmp_path / "made")]}, protocol)
    with pytest.raises(PickleRefused, match="more than plain values"):
        load_plain_pickle(hostile)
    with pytest.raises(DumpUnreadable, match="the pickle is refused"):
        read_dump(hostile)
    assert not (tmp_path / "made").exists()


def test_a_pickle_that_names_a_module_does_not_import_it() -> None:
    assert "antigravity" not in sys.modules
    with pytest.raises(PickleRefused):
        load_plain_pickle(b"\x80\x02cantigravity\ngeohash\n.")
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02]",
        b"\x80\x02a.",  # append without a list
        b"\x80\x02e.",  # appends without a mark
        b"\x80\x02h\x07.",  # a value that was never stored
        b"\x80\x02r\xff\xff\xff\xff.",  # stores nothing at a large place
        b"\x80\x02X\xff\xff\xff\x7fab.",  # a text longer than the data
        b"\x80\x02]}K\x01s.",  # items of an odd number
        b"\x80\x02}]K\x01s.",  # a key that is no key
        b"\xff\xff",
    ],
)
def test_damaged_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(PickleRefused):
        load_plain_pickle(data)


def folded(start: bytes = b"K\x01", times: int = 60) -> bytes:
    """A tuple of tuples that is small in a pickle and would have 2**60 values as text."""
    return start + b"\x94" + b"".join(b"h" + bytes([number]) + b"\x86\x94" for number in range(times))


def test_a_value_that_unfolds_without_end_is_read_at_once() -> None:
    text = b"\x8c\x11collective_seq_idK\x01\x8c\x0dprocess_group](" + folded() + b"e\x8c\x0cinput_dtypesh\x3c"
    found = read_dump(b"\x80\x04}(\x8c\x07entries](}(" + text + b"ueu.")
    assert [one.sequence for one in found.collectives] == [1]
    assert len(to_text(found)) < 1_000


@pytest.mark.parametrize("sign", [1, -1])
def test_keys_that_are_all_in_one_place_of_a_dict_are_refused(sign: int) -> None:
    """30,000 of them, a third of a megabyte, took four seconds, and ten times as many a hundred times as long."""
    same = pickle.dumps({sign * number * sys.hash_info.modulus: None for number in range(20)})
    with pytest.raises(PickleRefused, match="too large"):
        load_plain_pickle(same)


def test_only_plain_keys_are_read() -> None:
    with pytest.raises(DumpUnreadable, match="a key that is neither text nor number"):
        read_dump(b"\x80\x04}(" + folded() + b"K\x01u.")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b" " * (MOST_BYTES + 1), b"\x80\x02}."])
def test_data_that_are_no_dump_are_refused(data: bytes) -> None:
    with pytest.raises(DumpUnreadable):
        read_dump(data)
