"""Instants in a URL."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.web.url_times import instant
from tests.service.web.world import NOW

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-11-20", datetime(2026, 11, 19, 23, tzinfo=UTC)),
        ("2026-11-20T03:41:57Z", datetime(2026, 11, 20, 3, 41, 57, tzinfo=UTC)),
        ("2026-11-20T03:41:57+02:00", datetime(2026, 11, 20, 1, 41, 57, tzinfo=UTC)),
        ("2026-11-20T03:41:57 02:00", datetime(2026, 11, 20, 1, 41, 57, tzinfo=UTC)),  # a + that a URL made a space
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_time_a_day_or_a_span(text: str, expected: datetime) -> None:
    assert instant(text, "since", NOW, BERLIN) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "5", "24", "-1h", "2026-11-20T03:41:57", "2026-02-30", "0001-01-01T00:00:00+23:59", "٣h"]
)
def test_anything_else_is_reported_with_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        instant(text, "since", NOW, BERLIN)
    assert caught.value.errors[0].field == "since"
    assert "24h" in caught.value.errors[0].expected


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[0-9T:Zhdw+.\- ]{1,30}")))
def test_any_text_is_an_instant_or_an_error(text: str) -> None:
    with suppress(InvalidInput):
        assert instant(text, "until", NOW, BERLIN).tzinfo is UTC
