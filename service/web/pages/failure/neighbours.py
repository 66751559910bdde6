"""The failures just before and after a failure in the list of its cluster, for going through them one by one."""

from dataclasses import dataclass

from service.failures.records import FailureRow, FailureSort
from service.failures.repository import listing
from service.web import views
from service.web.services import Services
from service.web.views import FailureQuery


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The next newer and the next older failure of a list that the caller may see; None at an end of the list."""

    newer: FailureRow | None
    older: FailureRow | None


def find(services: Services, row: FailureRow, within: FailureQuery | None = None) -> Neighbours:
    """Find the neighbours of a failure by the end of its job.

    Args:
        services: of the caller.
        row: the failure.
        within: the filters of the list from which the reader came; None: the failures of its cluster.
    """
    wanted = FailureQuery({"cluster": row.cluster}) if within is None else within
    return Neighbours(_next(services, row, wanted, "ended_at"), _next(services, row, wanted, "-ended_at"))


def _next(services: Services, row: FailureRow, within: FailureQuery, sort: FailureSort) -> FailureRow | None:
    after = listing.encode_position(sort, *listing.position_of(row, sort))
    page = views.failures(services, within, limit=1, cursor=after, sort=sort)
    return next(iter(page.items), None)
