from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from service.sql.types import UtcDateTime, clean, short, utc
from service.times import MAX_TIME, MIN_TIME


@given(st.datetimes(timezones=st.timezones()))
def test_the_instant_stays_the_same(at: datetime) -> None:
    found = utc(at)
    assert found.tzinfo is UTC
    assert found.timestamp() == at.timestamp() or found in {MIN_TIME, MAX_TIME}


def test_an_instant_outside_the_range_of_datetime_is_clamped() -> None:
    assert utc(datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))) == MIN_TIME
    assert utc(datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))) == MAX_TIME


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="naive"):
        UtcDateTime().process_bind_param(datetime(2026, 1, 1), sqlite.dialect())  # noqa: DTZ001


@given(st.text())
def test_clean_text_can_be_stored_and_stays_as_long(text: str) -> None:
    found = clean(text)
    assert "\0" not in found
    found.encode("utf-8")
    assert len(found) == len(text)
    assert clean(found) == found


def test_a_long_text_is_cut_to_its_column() -> None:
    assert short(None) is None
    assert short("é" * 300) == "é" * 200
