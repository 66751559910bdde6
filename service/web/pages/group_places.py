"""Where the failures of a group occurred, by how much more often than elsewhere.

Lift is the share of a value among the failures of the group, divided by its usual share (Brin, Motwani, Ullman and Tsur
1997, *Dynamic itemset counting and implication rules for market basket data*, there "interest"). A queue or user with
many failures of all kinds has many of each group, so that the number of failures alone says little. The usual share is

- of a cluster, queue, team or user: that of all failures of the last days;
- of an image: that of all failures whose image is known;
- of a node: that of the node-hours that the clusters of the group worked, since most failures suspect no node.

Small samples: a lift is shown only if the usual share is outside the 95 % interval of the share in the group (Wilson
1927), of at least five failures. Values are ordered by the lower end of this interval, divided by the usual share.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from classifiers.suspected_place import suspects_nodes
from service.groups.records import GroupDetail
from service.reports import intervals
from service.web.services import Services

DAYS = 28  # of all failures that a group is compared with
LEAST_FAILURES = 5  # of a group: the shares of fewer say nothing
UNUSUAL = 2.0  # times as often at least, by the lower end of the interval, for the sentence above the list
MOST_NAMED = 4  # in this sentence
KINDS = ("node", "image", "queue", "user", "team", "cluster")


@dataclass(frozen=True, slots=True)
class Place:
    """A value of a facet.

    Attributes:
        name: the value.
        failures: of the group.
        lift: how many times as often as usual; None if it is not known, or not certain that it differs.
        least: the lower end of the lift's 95 % interval; 0 if it is not known.
    """

    name: str
    failures: int
    lift: float | None = None
    least: float = 0.0


def places(services: Services, detail: GroupDetail) -> dict[str, list[Place]]:
    """The values of each kind, most unusual first; without nodes if the verdict of the group suspects none."""
    values = {kind: {one.name: one.failures for one in detail.facets if one.kind == kind} for kind in KINDS}
    if not suspects_nodes(detail.row.side, abstained=detail.row.abstained):
        values["node"] = {}
    found: dict[str, list[Place]] = {}
    for kind, counts in values.items():
        of, usual = _usual(services, detail, kind, counts) if counts else (0, {})
        compared = [place(name, failures, of, usual.get(name)) for name, failures in counts.items()]
        found[kind] = sorted(compared, key=lambda one: -one.least)
    return found


def place(name: str, failures: int, of: int, usual: float | None) -> Place:
    """A value that `failures` of `of` failures have, and usually the share `usual`."""
    share = intervals.share(min(failures, of), of)
    if not usual or share is None or of < LEAST_FAILURES:
        return Place(name, failures)
    differs = not share.low <= usual <= share.high
    return Place(name, failures, share.value / usual if differs else None, share.low / usual)


def unusual(found: Mapping[str, Sequence[Place]]) -> list[tuple[str, Place]]:
    """The values that are certainly more frequent than usual, the most unusual ones first, each with its kind."""
    far = [(kind, one) for kind, those in found.items() for one in those if one.lift and one.least >= UNUSUAL]
    return sorted(far, key=lambda item: -item[1].least)[:MOST_NAMED]


def _usual(
    services: Services, detail: GroupDetail, kind: str, names: Collection[str]
) -> tuple[int, Mapping[str, float]]:
    """How many failures of the group have a value of a kind, and the usual share of each value where it is known."""
    with services.reading() as reading:
        if kind == "image":
            return reading.groups.with_image(detail.row.id), reading.groups.image_shares(names)
        if kind == "node":
            counts = [one.failures for one in detail.facets if one.kind == kind]
            clusters = {one.name for one in detail.facets if one.kind == "cluster"}
            return sum(counts), reading.suspicion.work_shares(clusters, names)
        since = services.clock.now() - timedelta(days=DAYS)
        return detail.row.failures, reading.statistics.failure_shares(kind, names, since)
