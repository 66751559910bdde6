"""The opinion of the second reader on a failure's kind, as the page shows it."""

from dataclasses import replace

from service.failures.records import FailureRow
from service.second_reader.records import SecondReading
from service.web.services import Services


def find(services: Services, row: FailureRow, *, all_failures: bool) -> SecondReading | None:
    """The answered reading of the failure's kind, None without one or where a person set the verdict.

    `all_failures`: whether the reader may see other people's failures; else the reason, which is in words about one
    failure, is left out where it is another one.
    """
    if row.source == "person":
        return None
    with services.reading() as reading:
        found = reading.second_readings.of(row.fingerprint)
    if found is None or found.status not in {"answered", "undecided"}:
        return None
    return found if all_failures or found.failure_id == row.id else replace(found, reason=None)
