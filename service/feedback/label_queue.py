"""What to label next: the groups of failures from whose label the most is gained.

The value of a label is the GPU-hours that the group lost × the doubt about its verdict × its novelty. Doubt is one
minus the confidence of the newest failure's verdict. Novelty falls with the labels of a year that the cause already
has: the first labels of a cause teach more than later ones (learning curves fall about with the square root).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt
from typing import Final

from service.db.session import ReadSession
from service.failures.records import FailureRow
from service.groups.records import GroupFilter, GroupRow, GroupSort

WANTED_PER_WEEK: Final = 10
REMEMBERED: Final = timedelta(days=365)  # labels that count for the novelty of a cause
RECENT: Final = timedelta(days=28)  # groups without a failure since are not worth a label
READ: Final = 200  # groups that are looked at: so many that lost most, and as many that failed last
# A verdict that is as sure as it can be still leaves some doubt.
LEAST_DOUBT: Final = 0.02
_CLOSED: Final = frozenset({"resolved", "muted"})


@dataclass(frozen=True, slots=True)
class QueuedGroup:
    """One group to label.

    Attributes:
        group: its id.
        failure: its newest failure.
        title: its first error line.
        side: the side of its verdict.
        cause: the cause of its verdict.
        abstained: whether the verdict is undecided.
        failures: number of failures.
        gpu_hours: GPU-hours that they lost.
        doubt: 0..1, about the verdict of the newest failure.
        novelty: 0..1, of the cause.
        value: GPU-hours × doubt × novelty.
    """

    group: int
    failure: int
    title: str
    side: str
    cause: str
    abstained: bool
    failures: int
    gpu_hours: float
    doubt: float
    novelty: float
    value: float


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """The groups to label, the most valuable first; `labelled` groups of this week of the `wanted` ones.

    Always one page.
    """

    items: tuple[QueuedGroup, ...]
    labelled: int
    wanted: int
    next_cursor: None = None


def queue(reading: ReadSession, now: datetime, week_start: datetime) -> LabelQueue:
    """The groups to label next.

    Args:
        reading: the groups and labels.
        now: the current time.
        week_start: since when labels count for this week.
    """
    # Those that lost most since the beginning are labelled or over some day: new ones would never be among them.
    orders: tuple[GroupSort, ...] = ("-gpu_hours_lost", "-last_at")
    pages = (reading.groups.page(GroupFilter(), limit=READ, sort=one) for one in orders)
    rows = list({row.id: row for page in pages for row in page.items}.values())
    labelled = sum(row.labelled_at is not None and row.labelled_at >= week_start for row in rows)
    waiting = [
        row for row in rows if row.labelled_at is None and row.last_at >= now - RECENT and row.state not in _CLOSED
    ]
    newest = reading.failures.rows([row.last_id for row in waiting])
    unsure = reading.feedback.unsure_about([row.last_id for row in waiting])
    known = reading.feedback.labels_by_cause(now - REMEMBERED)
    return LabelQueue(ranked(waiting, newest, known, unsure)[:WANTED_PER_WEEK], labelled, WANTED_PER_WEEK)


def ranked(
    groups: Sequence[GroupRow],
    newest: Mapping[int, FailureRow],
    labels_by_cause: Mapping[str, int],
    unsure: Collection[int] = (),
) -> tuple[QueuedGroup, ...]:
    """The groups in the order of their value.

    Args:
        groups: groups without a label.
        newest: failures by id; groups whose newest failure is not among them or was judged by a person are left out.
        labels_by_cause: number of labels by cause.
        unsure: failures about which a person said that the cause cannot be determined; their groups are left out.
    """
    found = []
    for row in groups:
        failure = newest.get(row.last_id)
        if failure is None or failure.source == "person" or failure.id in unsure:
            continue
        doubt = max(LEAST_DOUBT, 1.0 - failure.confidence)
        novelty = 1.0 / sqrt(1 + labels_by_cause.get(failure.cause, 0))
        found.append(
            QueuedGroup(
                group=row.id,
                failure=failure.id,
                title=row.title,
                side=failure.side,
                cause=failure.cause,
                abstained=failure.abstained,
                failures=row.failures,
                gpu_hours=row.gpu_hours_lost,
                doubt=doubt,
                novelty=novelty,
                value=row.gpu_hours_lost * doubt * novelty,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.value, one.group)))
