"""Queries about groups and feedback, shared by pages and API; where the failures of a group occurred, by lift.

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

from classifiers import taxonomy
from classifiers.suspected_place import suspects_nodes
from service import formatting
from service.contracts.page import Page
from service.failures.records import FailureFilter, FailureRow, GroupShare, GroupShares
from service.failures.repository.facets import FacetValue
from service.feedback.records import Audit, GroupLabel, Label, StoredFeedback
from service.groups.records import GroupDetail, GroupFilter, GroupRow, GroupSort
from service.groups.states import levels
from service.reports import intervals
from service.web.services import Services

AUDITS = 12
LINE = 200  # characters of the error line that are shown
CAUSES_NAMED = 4
DAYS = 28  # of all failures that a group is compared with
LEAST_FAILURES = 5  # of a group: the shares of fewer say nothing
UNUSUAL = 2.0  # times as often at least, by the lower end of the interval, for the sentence above the list
MOST_NAMED = 4  # in this sentence
KINDS = ("node", "image", "queue", "user", "team", "cluster")
SMALL_CHANCE, SMALLEST_CHANCE = 0.05, 1e-6  # shown as "1 in N" between these


@dataclass(frozen=True, slots=True)
class Queued:
    """A failure that waits for a decision, with its feedback."""

    failure: FailureRow
    label: Label
    said: tuple[StoredFeedback, ...]


def groups(
    services: Services,
    filters: GroupFilter,
    *,
    limit: int = 50,
    cursor: str | None = None,
    sort: GroupSort = "-last_at",
) -> Page[GroupRow]:
    """One page of groups.

    Raises:
        InvalidInput: the limit, sort, state or cursor is invalid.
    """
    with services.reading() as reading:
        return reading.groups.page(filters, limit=limit, cursor=cursor, sort=sort)


def most_frequent(
    services: Services, filters: FailureFilter, *, most: int
) -> tuple[GroupShares, tuple[tuple[GroupRow, GroupShare], ...]]:
    """The most frequent groups of the failures that match a filter, each with its failures among them."""
    with services.reading() as reading:
        found = reading.failures.group_shares(filters, most=most)
        rows = reading.groups.rows([share.group_id for share in found.shares])
        return found, tuple((rows[share.group_id], share) for share in found.shares if share.group_id in rows)


def group(services: Services, group_id: int, actor: str | None) -> GroupDetail:
    """One group.

    Raises:
        NotFound: no such group.
    """
    with services.reading() as reading:
        return reading.groups.get(group_id, actor=actor)


def labels(services: Services, group_id: int) -> tuple[GroupLabel, ...]:
    """The labels of a group that were not withdrawn, the latest first.

    Raises:
        NotFound: no such group.
    """
    with services.reading() as reading:
        reading.groups.row(group_id)
        return reading.group_labels.of(group_id)


def why_together(
    detail: GroupDetail, signatures: Sequence[str] = (), causes: Sequence[FacetValue] = ()
) -> tuple[str, ...]:
    """Why the failures of a group belong together.

    Args:
        detail: the group.
        signatures: those in the evidence of its latest failure.
        causes: the causes of its newest failures with their counts, most first ("unknown": undecided).
    """
    row = detail.row
    line = formatting.whole_words(row.title, LINE)
    join = "They have" if row.failures > 1 else "Later failures join this one with"
    reasons = [
        (
            f"{join} the same first error line after ids, paths, hosts and numbers are masked, "
            f"or first error lines of the same signature: {line}"
        )
    ]
    if signatures:
        reasons.append(f"This line matches the {_signatures(signatures)} {', '.join(signatures[:3])}.")
    if len(causes) > 1:
        shares = ", ".join(f"{_cause_title(one.value)} ({one.failures:,})" for one in causes[:CAUSES_NAMED])
        reasons.append(f"Their causes differ: {shares}.")
    else:
        cause = _cause_title(causes[0].value if causes else row.cause)
        reasons.append(f"They have the same cause: {cause}." if row.failures > 1 else f"Cause: {cause}.")
    if len(detail.prints) > 1:
        reasons.append(f"{len(detail.prints)} kinds were merged manually.")
    reasons.extend(f"Split off manually: failures with {split.field} {split.value}." for split in detail.splits)
    return tuple(reasons)


def why_state(row: GroupRow) -> str:
    """Why a group is in its state, with the figures behind it."""
    if row.state == "escalating" and row.expected is not None and row.chance is not None:
        given = levels()
        return (
            f"{row.recent} failures in the last {given.window_h:g} hours; expected from its history: "
            f"{row.expected:.1f}. At an unchanged rate this many or more would occur with a probability of "
            f"{_chance(row.chance)} (escalating below {_chance(given.chance)})"
        )
    if row.state == "new":
        return f"first seen less than {levels().new_for_h / 24:g} days ago"
    if row.state == "regressed":
        return "it occurred again after it was resolved"
    if row.state == "muted":
        return "muted " + (" or ".join(_mute(row)) or "permanently")
    return ""


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


def queue(services: Services, *, limit: int = 50, cursor: str | None = None) -> Page[Queued]:
    """Failures whose label is disputed or contested, latest first.

    Raises:
        InvalidInput: the limit or cursor is invalid.
    """
    with services.reading() as reading:
        page = reading.feedback.labelled(limit=limit, cursor=cursor, open_only=True)
        rows = reading.failures.rows([label.failure_id for label in page.items])
        items = tuple(
            Queued(rows[label.failure_id], label, reading.feedback.of(label.failure_id))
            for label in page.items
            if label.failure_id in rows
        )
    return Page(items, page.next_cursor)


def audits(services: Services) -> dict[str, tuple[Audit, ...]]:
    """The weekly samples, latest week first."""
    with services.reading() as reading:
        return {week: reading.audit_samples.audit(week) for week in reading.audit_samples.audit_weeks(limit=AUDITS)}


def _cause_title(code: str) -> str:
    causes = taxonomy.load().causes
    return "undecided" if code == "unknown" else causes[code].title if code in causes else code


def _mute(row: GroupRow) -> list[str]:
    parts = []
    if row.muted_until is not None:
        parts.append(f"until {row.muted_until:%Y-%m-%d %H:%M} UTC")
    if row.muted_failures is not None:
        parts.append(f"for {max(0, row.muted_failures - row.failures):,} more failures")
    if row.muted_users is not None:
        parts.append(f"until {max(0, row.muted_users - row.users):,} more users are affected")
    return parts


def _chance(value: float) -> str:
    """A small probability in words: nobody reads 2.3e-05 in a hurry."""
    if value < SMALLEST_CHANCE:
        return "less than 1 in 1,000,000"
    return f"1 in {1 / value:,.0f}" if value < SMALL_CHANCE else f"{value:.2g}"


def _signatures(named: Sequence[str]) -> str:
    return "signature" if len(named) == 1 else "signatures"
