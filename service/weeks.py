"""ISO weeks in a time zone: names, start and end."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from service.errors import FieldError, InvalidInput

_NAME = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
EXPECTED = "an ISO week such as 2026-W47"


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """An ISO 8601 week: Monday to Sunday; the week of a year's first Thursday is W01."""

    year: int
    number: int

    def __str__(self) -> str:
        """The name of the week, such as 2026-W47."""
        return f"{self.year:04d}-W{self.number:02d}"

    def monday(self) -> date:
        """The first day of the week."""
        return date.fromisocalendar(self.year, self.number, 1)

    def dates(self) -> str:
        """The first and the last day of the week, such as "11-16 to 11-22"."""
        return f"{self.monday():%m-%d} to {self.monday() + timedelta(days=6):%m-%d}"

    def earlier(self, weeks: int) -> "Week":
        """The week `weeks` weeks earlier."""
        year, number, _ = (self.monday() - timedelta(weeks=weeks)).isocalendar()
        return Week(year, number)

    def span(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """From Monday's midnight to the next in the zone, in UTC: 167 to 169 hours."""
        first = self.monday()
        start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, first + timedelta(days=7)))
        return start, end

    def days(self, zone: ZoneInfo) -> tuple[datetime, ...]:
        """The eight midnights that bound the seven days in the zone, in UTC."""
        first = self.monday()
        return tuple(datetime.combine(first + timedelta(days=day), time(), zone).astimezone(UTC) for day in range(8))


def parse(text: str) -> Week:
    """Parse the name of a week.

    Raises:
        InvalidInput: the name is invalid, or the year has no such week.
    """
    found = _NAME.fullmatch(text.strip())
    week = Week(int(found[1]), int(found[2])) if found else Week(0, 0)
    try:
        week.earlier(60)
        week.span(ZoneInfo("UTC"))
    except (ValueError, OverflowError):
        raise InvalidInput(f"week: expected {EXPECTED}", (FieldError("week", EXPECTED, text[:40]),)) from None
    return week


def of(moment: datetime, zone: ZoneInfo) -> Week:
    """Return the week that contains a time."""
    year, number, _ = moment.astimezone(zone).isocalendar()
    return Week(year, number)


def last_complete(now: datetime, zone: ZoneInfo) -> Week:
    """Return the last week that is over."""
    return of(now, zone).earlier(1)
