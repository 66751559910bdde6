from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import LogStream
from service.sql.packing import (
    WORTH_COMPRESSING,
    compress,
    decompress,
    dump,
    pack,
    pack_streams,
    streams_of,
    unpack,
)

json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(json)
def test_json_round_trips(value: Any) -> None:
    assert unpack(pack(value)) == value
    assert unpack(dump(value)) == value


@given(st.binary(max_size=3 * WORTH_COMPRESSING))
def test_bytes_round_trip(data: bytes) -> None:
    if not data.startswith(b"\x28\xb5\x2f\xfd"):  # JSON never begins like a frame
        assert decompress(compress(data)) == data


def test_long_text_is_compressed() -> None:
    assert len(pack("error " * 10_000)) < 200


def test_values_that_json_lacks_are_stored_approximately() -> None:
    assert unpack(pack({"a": "\ud800", 1: 2**70, "o": (object, float("inf")), "n": [None, True]})) == {
        "a": "?",
        "1": str(2**70),
        "o": [str(object), None],
        "n": [None, True],
    }


@given(st.text(), st.integers(0, 2**31) | st.none(), st.none() | st.text(), st.none() | st.integers(1, 2**40))
def test_streams_round_trip(text: str, rank: int | None, node: str | None, line: int | None) -> None:
    stream = LogStream(text, rank, node, "stdout", line, ((0, line), (4, None)), None)
    packed = pack_streams([stream])
    assert packed is not None
    [found] = streams_of(unpack(packed))
    assert (found.rank, found.first_line, found.windows) == (rank, line, stream.windows)
    assert len(found.text) == len(text)
    assert pack_streams([]) is None
