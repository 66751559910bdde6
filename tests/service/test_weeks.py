from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import weeks
from service.errors import InvalidInput

BERLIN = ZoneInfo("Europe/Berlin")


def test_a_week_runs_from_monday_to_monday_by_the_zones_clocks() -> None:
    since, until = weeks.parse("2026-W47").span(BERLIN)
    assert since == datetime(2026, 11, 15, 23, tzinfo=UTC)
    assert until - since == timedelta(days=7)


def test_a_week_with_a_clock_change_has_another_length() -> None:
    since, until = weeks.parse("2026-W43").span(BERLIN)
    assert until - since == timedelta(hours=169)


@pytest.mark.parametrize("text", ["2026-47", "2026-W54", "2025-W53", "W47", "", "2026-W00", "0000-W01", "9999-W53"])
def test_an_invalid_week_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput, match="an ISO week such as 2026-W47"):
        weeks.parse(text)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 -- zone beside
def test_every_moment_lies_in_its_week_and_weeks_have_no_gaps(moment: datetime) -> None:
    week = weeks.of(moment, BERLIN)
    since, until = week.span(BERLIN)
    assert since <= moment < until
    assert weeks.parse(str(week)) == week
    assert week.earlier(1).span(BERLIN)[1] == since


def test_the_last_complete_week_is_over() -> None:
    now = datetime(2026, 11, 22, 23, tzinfo=UTC)  # Monday, 0:00 in Berlin
    assert str(weeks.last_complete(now, BERLIN)) == "2026-W47"
    assert str(weeks.last_complete(now - timedelta(seconds=1), BERLIN)) == "2026-W46"
