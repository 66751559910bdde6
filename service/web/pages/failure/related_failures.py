"""What stands around a failure: its group, others on its node and in its hour, the nearest that was solved."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.failures.records import FailureDetail, FailureRow
from service.failures.repository.solved import Solved
from service.feedback.records import Label, StoredFeedback
from service.feedback.repository.applied_fixes import NearestFix, ReportedFix
from service.formatting import duration
from service.groups.records import GroupRow
from service.web import views
from service.web.services import Services
from service.web.views import FailureQuery

SHOWN = 5
NAMED = 3  # nodes
HOUR = timedelta(minutes=30)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class FailureList:
    """Some other failures: what they share, in words, the filters of all of them, the newest few, whether more fit."""

    words: str
    filters: dict[str, str]
    rows: tuple[FailureRow, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class RelatedFailures:
    """See the module. `fixed`: what was different when the nearest solved one's job succeeded, in words.

    `applied_fix`: the nearest one that a person says was applied_fix, and by what.
    """

    group: GroupRow | None
    others: tuple[FailureList, ...]
    resolved: Solved | None
    fixed: str
    applied_fix: NearestFix | None = None


@dataclass(frozen=True, slots=True)
class FailureFeedback:
    """What people said of it, oldest first, what stands of it, and what they say applied_fix it."""

    label: Label | None
    items: tuple[StoredFeedback, ...]
    applied_fix: ReportedFix | None


def find(services: Services, detail: FailureDetail, *, all_failures: bool) -> RelatedFailures:
    """What stands around it; groups and solved failures of others only for those who see `all_failures`."""
    row = detail.row
    node = row.suspect_node or (row.nodes[0] if len(row.nodes) == 1 else None)
    wanted: list[tuple[str, dict[str, str]]] = [("of this kind", {"group": row.fingerprint})]
    group: GroupRow | None = None
    resolved: Solved | None = None
    applied_fix: NearestFix | None = None
    if all_failures:
        with services.store.reading() as reading:
            number = reading.groups.of([row.fingerprint]).get(row.fingerprint)
            group = None if number is None else reading.groups.row(number)
            resolved = reading.failures.solved(row)
            applied_fix = reading.applied_fixes.nearest(row)
        if group is not None:
            wanted = [("of this group", {"group": str(group.id)})]
    if node is not None:
        wanted.append((f"on {node}, within a week", {"node": node, **_within(row.ended_at, WEEK)}))
    hour = _within(row.ended_at, HOUR)
    wanted.append((f"on {row.cluster}, within half an hour", {"cluster": row.cluster, **hour}))
    others = tuple(_others(services, row.id, words, filters) for words, filters in wanted)
    return RelatedFailures(group, others, resolved, "" if resolved is None else _fixed(resolved), applied_fix)


def _within(at: datetime, span: timedelta) -> dict[str, str]:
    """A span to both sides, as filters; of a clock at the edge of the calendar, the one side that is there."""
    found = {}
    for name, shift in (("since", -span), ("until", span)):
        with suppress(OverflowError):
            found[name] = _at(at + shift)
    return found


def feedback_of(services: Services, failure_id: int) -> FailureFeedback:
    """What people said of it."""
    with services.store.reading() as reading:
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


def _fixed(resolved: Solved) -> str:
    """What is known to have changed between the failure and the attempt that succeeded."""
    later = duration((resolved.succeeded_at - resolved.ended_at).total_seconds())
    changes = []
    left = [node for node in resolved.failed_on if node not in resolved.succeeded_on]
    if left and resolved.succeeded_on:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        changes.append(f"on other nodes, without {', '.join(left[:NAMED])}{more}")
    if resolved.failed_gpus != resolved.succeeded_gpus and resolved.succeeded_gpus is not None:
        changes.append(f"with {resolved.succeeded_gpus} GPUs instead of {resolved.failed_gpus or 'none'}")
    how = " and ".join(changes) or "with nothing changed that the scheduler knows of"
    return f"the same job succeeded {later} later, {how}"


def _at(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
