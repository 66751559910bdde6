import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from service.db.session import Store
from service.errors import InvalidInput
from service.formatting import counted
from service.jobs.tables import jobs
from service.sql import paging
from service.sql.paging import decode, encode
from tests.service.databases import engine_of
from tests.service.sample_rows import job, put


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


def test_a_count_stops_one_beyond_its_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, [job(f"e{number}", status=("failed", "hung")[number == 0]) for number in range(7)])
    with engine_of(store).connect() as connection:
        assert connection.scalar(paging.bounded(select(jobs.c.id))) == 7
        monkeypatch.setattr(paging, "COUNT_LIMIT", 5)
        assert connection.scalar(paging.bounded(select(jobs.c.id))) == 6
        found = paging.read_counts(connection, paging.bounded_counts(jobs.c.status, ("failed", "hung", "timeout")))
    assert found == {"failed": 6, "hung": 1}


def test_a_bounded_count_is_shown_with_a_plus() -> None:
    assert [counted(value) for value in (0, 10_000, 10_001)] == ["0", "10,000", "10,000+"]


def test_a_full_last_page_has_no_cursor() -> None:
    for many, cursor in ((2, None), (3, paging.encode("list", 20))):
        rows = [10 * number for number in range(1, many + 1)]
        page = paging.page_of(rows, 2, str, "list", lambda last: (int(last),))
        assert (page.items, page.next_cursor) == (("10", "20"), cursor)
