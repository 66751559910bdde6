"""What the owner of some jobs should do, above the list of their failures: one entry for each problem."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.failures.records import FailureRow
from service.jobs.records import Attempt
from service.web import views
from service.web.pages.failure.page import success_after
from service.web.pages.failure.short_advice import short_advice
from service.web.services import Services
from service.web.views import FailureQuery

SPAN = "7d"  # if the page has no period
COUNTED = 200  # newest failures that are looked at
SHOWN = 5  # problems


@dataclass(frozen=True, slots=True)
class Problem:
    """Failures of one fingerprint.

    Attributes:
        latest: the newest of them, whose verdict gives the advice.
        failures: how many, of `jobs` jobs.
        says: the advice in short, such as "Resubmit now".
        advice: what to do, in sentences; may be empty.
        succeeded: the attempt of the newest one's job that succeeded since; None if none did.
    """

    latest: FailureRow
    failures: int
    jobs: int
    says: str
    advice: str
    succeeded: Attempt | None


@dataclass(frozen=True, slots=True)
class OwnFailures:
    """The newest failures of a person by side ("unknown": undecided), and their problems, newest first.

    `whole`: no earlier failure is in the period. `more`: problems that are not listed.
    """

    failures: int
    whole: bool
    sides: Mapping[str, int]
    problems: tuple[Problem, ...]
    more: int


def of_person(services: Services, period: FailureQuery) -> OwnFailures | None:
    """The failures that the caller may see in a period; None if there are none."""
    page = views.failures(services, period, limit=COUNTED)
    if not page.items:
        return None
    kinds: dict[str, list[FailureRow]] = {}
    for row in page.items:
        kinds.setdefault(row.fingerprint, []).append(row)
    problems = [_problem(services, rows) for rows in list(kinds.values())[:SHOWN]]
    sides = Counter("unknown" if row.abstained else row.side for row in page.items)
    more = max(0, len(kinds) - SHOWN)
    return OwnFailures(len(page.items), page.next_cursor is None, sides, tuple(problems), more)


def _problem(services: Services, rows: Sequence[FailureRow]) -> Problem:
    detail = views.failure(services, rows[0].id)
    says, advice = short_advice(services, detail.row, detail.verdict)
    jobs = len({(row.cluster, row.job_id) for row in rows})
    return Problem(rows[0], len(rows), jobs, says, advice, success_after(detail))
