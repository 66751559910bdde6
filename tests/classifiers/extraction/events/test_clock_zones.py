"""The clock of a log is known where its times name their zone."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.clocks import ClockOfLogs
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.stream_reader import StreamText

START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


def clock_of(first: str, last: str) -> ClockOfLogs:
    """The clock of a log with two lines, of a job of two hours."""
    job = JobFacts(status="failed", started_at=START, ended_at=START + timedelta(hours=2))
    source = LogStream(text=f"{first} step 1 loss 2\n{last} KeyError: 'x'\n")
    return ClockOfLogs(RawCase(job=job, streams=(source,)), [StreamText(0, source.text, source, [])])


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2026-11-20T18:00:00+09:00", "2026-11-20T18:59:59+09:00"),  # a tail that begins an hour after the start
        ("2026-11-20 18:00:00.123+0900", "2026-11-20 18:59:59.123+0900"),
        ("[2026-11-20T04:00:00.123-05:00]", "[2026-11-20T04:59:59.123-05:00]"),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:30:00Z"),
    ],
)
def test_times_that_name_their_zone_tell_the_clock(first: str, last: str) -> None:
    clock = clock_of(first, last)
    stamp = last.strip("[]").replace(",", ".")
    instant = datetime.fromisoformat(stamp)
    assert clock.is_aligned
    assert clock.of(instant) == pytest.approx(time_of(last), abs=1)


def test_a_zone_that_fits_neither_start_nor_end_is_not_that_of_the_clock() -> None:
    """Such as of a program that writes its local time with a Z."""
    clock = clock_of("2026-11-20T17:00:00Z", "2026-11-20T18:59:59Z")
    assert clock.of(START) == time_of("2026-11-20T17:00:00Z")
