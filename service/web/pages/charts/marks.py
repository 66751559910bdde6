"""Events of a period besides failures: incidents, repairs of nodes, changes of the model; marks in its charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import quote

from service.formatting import with_noun
from service.learning.records import PACKAGED
from service.web.services import Services

MOST = 12  # marks: more would cover the bars


@dataclass(frozen=True, slots=True)
class Mark:
    """One event of a period.

    Args:
        number: as shown in the chart and in the list below it, from 1 in the order of time.
        at: when it happened.
        drawn: whether it lies in the period; an incident may have been opened before.
        kind: incident, repair or model.
        text: what happened.
        link: the text of the link, and its address.
        note: further facts.
    """

    number: int
    at: datetime
    drawn: bool
    kind: str
    text: str
    link: tuple[str, str]
    note: str


_Found = tuple[datetime, str, str, tuple[str, str], str]


def find(services: Services, since: datetime, until: datetime, *, cluster: str | None) -> tuple[Mark, ...]:
    """The newest marks of [since, until), oldest first."""
    with services.reading() as reading:
        incidents = reading.incidents.within(since, until, cluster=cluster, most=MOST)
        repairs = reading.repairs.within(since, until, cluster=cluster, most=MOST)
        promotions = [one for one in reading.site_layers.promotions(limit=MOST) if since <= one.at < until]
    found: list[_Found] = [
        (
            one.opened_at,
            "incident",
            one.title or one.value,
            (f"I-{one.id}", f"/incidents/{one.id}"),
            f"{with_noun(one.jobs, 'job')} of {with_noun(one.users, 'user')}{'' if one.closed_at else ', still open'}",
        )
        for one in incidents
    ]
    found += [
        (
            one.at,
            "repair",
            one.note or "",
            (one.node, f"/nodes/{quote(one.cluster, safe='')}/{quote(one.node)}"),
            "",
        )
        for one in repairs
    ]
    found += [
        (one.at, "model", one.reason, (_layer(one.layer), "/model/layers"), f"by {one.who}") for one in promotions
    ]
    newest = sorted(found, key=lambda one: one[0])[-MOST:]
    return tuple(Mark(number, one[0], one[0] >= since, *one[1:]) for number, one in enumerate(newest, 1))


def places(marks: Sequence[Mark], limits: Sequence[datetime]) -> list[tuple[int, float]]:
    """The number of each drawn mark and its place among the parts of a period: 1.5 is the middle of the second part.

    Args:
        marks: of the period.
        limits: the begin of each part, and the end of the last one.
    """
    found = []
    for mark in marks:
        for part, (begin, end) in enumerate(pairwise(limits)):
            if mark.drawn and begin <= mark.at < end and end - begin > timedelta(0):
                found.append((mark.number, round(part + (mark.at - begin) / (end - begin), 3)))
    return found


def _layer(name: str) -> str:
    return "the packaged model" if name == PACKAGED else name
