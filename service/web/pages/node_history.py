"""The history of a node: its events, repairs and failures with their trend; commands that take it out of service."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from service.failures.records import FailureRow
from service.nodes.records import NodeRow, StoredNodeEvent
from service.web import views
from service.web.pages.charts import sparklines
from service.web.pages.charts.sparklines import Sparkline
from service.web.services import Services
from service.web.views import FailureQuery

WEEKS = 4
COUNTED = 500  # failures at most
SUSPECT = "Faultline: jobs fail here more often than elsewhere"
OTHERWISE = "Faultline: to be tested"


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline, with the failure or the event that it shows."""

    at: datetime
    kind: Literal["failure", "event", "repair"]
    failure: FailureRow | None = None
    event: StoredNodeEvent | None = None


def failures_on(cluster: str, node: str, side: str | None) -> FailureQuery:
    """The failures on a node: all, those of one side, or the undecided ones ("unknown")."""
    where = {"cluster": cluster, "node": node}
    if side is None:
        return FailureQuery(where)
    return (
        FailureQuery(where, abstained=True)
        if side == "unknown"
        else FailureQuery({**where, "side": side}, abstained=False)
    )


def trend(services: Services, wanted: FailureQuery) -> tuple[Sparkline, bool]:
    """The sparkline of the failures of the last four weeks, by day; and whether it counts all of them.

    It counts the newest failures up to a limit, so that its cost is bounded.
    """
    page = views.failures(services, replace(wanted, since=f"{WEEKS}w", until=None), limit=COUNTED)
    return sparklines.daily([row.ended_at for row in page.items], services.clock.now(), 7 * WEEKS), (
        page.next_cursor is None
    )


def moments(
    node: NodeRow,
    events: Sequence[StoredNodeEvent],
    failures: Sequence[FailureRow],
    period: tuple[datetime | None, datetime | None] = (None, None),
) -> tuple[TimelineEntry, ...]:
    """The entries of a period, newest first. Failures are only those of the time that the listed events cover."""
    found = [TimelineEntry(event.at, "event", event=event) for event in events]
    found += [TimelineEntry(row.ended_at, "failure", failure=row) for row in failures]
    if node.repaired_at is not None and all(event.at != node.repaired_at for event in events):  # else it is listed
        found.append(TimelineEntry(node.repaired_at, "repair"))
    since, until = period
    found = [one for one in found if (since is None or one.at >= since) and (until is None or one.at < until)]
    return tuple(sorted(found, key=lambda moment: moment.at, reverse=True))


def commands(node: str, *, suspect: bool) -> tuple[tuple[str, str, str], ...]:
    """By scheduler: the command that keeps new jobs off a node and lets running ones end, and the one that undoes it.

    Names are quoted for a shell. `suspect`: jobs fail on this node more often than elsewhere, which is the reason.
    """
    name = shlex.quote(node)
    return (
        (
            "Slurm",
            f"scontrol update NodeName={name} State=DRAIN Reason={shlex.quote(SUSPECT if suspect else OTHERWISE)}",
            f"scontrol update NodeName={name} State=RESUME",
        ),
        ("Kubernetes", f"kubectl cordon {name}", f"kubectl uncordon {name}"),
    )
