"""Failures related to a failure: of its group, nearby in place and time, the nearest solved one, list neighbours."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.failures.records import FailureDetail, FailureRow, FailureSort
from service.failures.repository import listing
from service.failures.repository.solved import Solved
from service.feedback.records import Label, StoredFeedback
from service.fixes.repository import NearestFix, ReportedFix
from service.formatting import duration
from service.groups.records import GroupRow
from service.times import rfc3339
from service.web import views
from service.web.pages.templating import compared_node
from service.web.services import Services
from service.web.views import FailureQuery

SHOWN = 5
NAMED = 3  # nodes
HALF_HOUR = timedelta(minutes=30)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class FailureList:
    """Other failures: what they share, the filters for all of them, the newest few, and whether there are more."""

    words: str
    filters: dict[str, str]
    rows: tuple[FailureRow, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class RelatedFailures:
    """Related failures. `difference`: what was different when the job of the nearest solved failure succeeded.

    `applied_fix`: the nearest failure with a recorded fix, and the fix.
    """

    group: GroupRow | None
    others: tuple[FailureList, ...]
    solved: Solved | None
    difference: str
    applied_fix: NearestFix | None = None


@dataclass(frozen=True, slots=True)
class FailureFeedback:
    """Feedback on a failure (oldest first), the resulting label and the recorded fix."""

    label: Label | None
    items: tuple[StoredFeedback, ...]
    applied_fix: ReportedFix | None


def find(services: Services, detail: FailureDetail, *, all_failures: bool) -> RelatedFailures:
    """Find related failures; groups and solved failures only if the caller may see `all_failures`."""
    row = detail.row
    node = compared_node(row)
    wanted: list[tuple[str, dict[str, str]]] = [("of this group", {"group": row.fingerprint})]
    group: GroupRow | None = None
    solved: Solved | None = None
    applied_fix: NearestFix | None = None
    if all_failures:
        with services.reading() as reading:
            number = reading.groups.of([row.fingerprint]).get(row.fingerprint)
            group = None if number is None else reading.groups.row(number)
            solved = reading.failures.solved(row)
            applied_fix = reading.applied_fixes.nearest(row)
        if group is not None:
            wanted = [("of this group", {"group": str(group.id)})]
    if node is not None:
        wanted.append((f"on {node}, within a week", {"node": node, **_within(row.ended_at, WEEK)}))
    near = _within(row.ended_at, HALF_HOUR)
    wanted.append((f"on {row.cluster}, within half an hour", {"cluster": row.cluster, **near}))
    others = tuple(_others(services, row.id, words, filters) for words, filters in wanted)
    return RelatedFailures(group, others, solved, "" if solved is None else _difference(solved), applied_fix)


def _within(at: datetime, span: timedelta) -> dict[str, str]:
    """A span before and after a time, as filters; a side outside the calendar is omitted."""
    found = {}
    for name, shift in (("since", -span), ("until", span)):
        with suppress(OverflowError):
            found[name] = rfc3339(at + shift)
    return found


def feedback_of(services: Services, failure_id: int) -> FailureFeedback:
    """Feedback on a failure."""
    with services.reading() as reading:
        return FailureFeedback(
            reading.feedback.label(failure_id), reading.feedback.of(failure_id), reading.applied_fixes.of(failure_id)
        )


def _others(services: Services, excluded_id: int, words: str, filters: dict[str, str]) -> FailureList:
    times = {name: filters[name] for name in ("since", "until") if name in filters}
    named = {name: value for name, value in filters.items() if name not in times}
    page = views.failures(
        services, FailureQuery(named, since=times.get("since"), until=times.get("until")), limit=SHOWN + 2
    )
    rows = tuple(row for row in page.items if row.id != excluded_id)
    return FailureList(words, filters, rows[:SHOWN], more=len(rows) > SHOWN)


def _difference(solved: Solved) -> str:
    """Known differences between the failed and the succeeded attempt."""
    later = duration((solved.succeeded_at - solved.ended_at).total_seconds())
    changes = []
    left = [node for node in solved.failed_on if node not in solved.succeeded_on]
    if left and solved.succeeded_on:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        changes.append(f"on other nodes, without {', '.join(left[:NAMED])}{more}")
    if solved.failed_gpus != solved.succeeded_gpus and solved.succeeded_gpus is not None:
        changes.append(f"with {solved.succeeded_gpus} GPUs instead of {solved.failed_gpus or 'none'}")
    how = " and ".join(changes) or "with no change known to the scheduler"
    return f"the same job succeeded {later} later, {how}"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The next newer and the next older failure of a list that the caller may see; None at an end of the list."""

    newer: FailureRow | None
    older: FailureRow | None


def neighbours_of(services: Services, row: FailureRow, within: FailureQuery | None = None) -> Neighbours:
    """Find the neighbours of a failure by the end of its job.

    Args:
        services: of the caller.
        row: the failure.
        within: the filters of the list from which the reader came; None: the failures of its cluster.
    """
    wanted = FailureQuery({"cluster": row.cluster}) if within is None else within
    return Neighbours(
        _next_in_list(services, row, wanted, "ended_at"), _next_in_list(services, row, wanted, "-ended_at")
    )


def _next_in_list(services: Services, row: FailureRow, within: FailureQuery, sort: FailureSort) -> FailureRow | None:
    after = listing.encode_position(sort, *listing.position_of(row, sort))
    page = views.failures(services, within, limit=1, cursor=after, sort=sort)
    return next(iter(page.items), None)
