"""Times of texts: always with their zone, and never an error."""

from datetime import UTC, datetime

import pytest

from service.times import instant_of

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-11-20T10:00:00Z", "2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00"])
def test_a_time_is_in_utc_unless_it_names_a_zone(text: str) -> None:
    found = instant_of(text)
    assert found == AT
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize("value", [None, 5, "", "soon", "2026-13-01", "0001-01-01T00:00:00+05:00"])
def test_what_is_no_time_is_none(value: object) -> None:
    assert instant_of(value) is None
