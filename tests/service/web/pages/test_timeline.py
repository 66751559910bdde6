"""The times of log lines on the timeline of a failure."""

from datetime import UTC, datetime

import pytest

from service.web.pages.failure.timeline import log_time

NIGHT = datetime(2026, 12, 31, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "ended", "expected"),
    [
        ("2027-01-01 02:59:00 loss 2.1", NIGHT, datetime(2027, 1, 1, 2, 59, tzinfo=UTC)),  # nine hours east of UTC
        ("E0101 02:59:00.5 error", NIGHT, datetime(2027, 1, 1, 2, 59, 0, 500_000, tzinfo=UTC)),
        ("I0105 02:59:00.5 old", NIGHT, datetime(2026, 1, 5, 2, 59, 0, 500_000, tzinfo=UTC)),
        (
            "2026-12-31 23:59:00 loss 2.1",
            datetime(2027, 1, 1, 4, tzinfo=UTC),
            datetime(2026, 12, 31, 23, 59, tzinfo=UTC),
        ),
        ("2028-02-29 10:00:00 x", datetime(2028, 2, 29, 11, tzinfo=UTC), datetime(2028, 2, 29, 10, tzinfo=UTC)),
        ("2025-11-20 10:00:00 x", NIGHT, None),
    ],
)
def test_times_of_lines_around_new_year(line: str, ended: datetime, expected: datetime | None) -> None:
    assert log_time(line, ended) == expected
