import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.sql.paging import decode, encode


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**63 - 1), st.text())
def test_a_cursor_round_trips_its_position(cost: float, number: int, at: str) -> None:
    assert decode(encode("list", cost, number), "list", float, int) == (cost, number)
    if "\ud800" <= max(at, default="") <= "\udfff":
        return
    assert decode(encode("list", at), "list", str) == (at,)


def made(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


BAD = [
    *("", "x", "%%%", "é", "=", "a" * 10_000, "\0"),
    made(["other", 1]),
    made(["list"]),
    made(["list", "1"]),
    made(["list", True]),
    made(["list", -1]),
    made(["list", 2**63]),
    made({"list": 1}),
    made(None),
]


@pytest.mark.parametrize("cursor", BAD)
def test_an_invalid_cursor_is_refused_with_its_field(cursor: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(cursor, "list", int)
    assert caught.value.errors[0].field == "cursor"


@given(st.text())
def test_any_text_is_either_a_cursor_or_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput):
        decode(cursor, "list", str, int)
