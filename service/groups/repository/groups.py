"""Groups of failures: lists, one group, and actions on them. The counts are computed in `counts`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import and_, bindparam, func, insert, select, update

from service.contracts.page import Page
from service.errors import NotFound
from service.groups.records import (
    FACETS,
    Facet,
    FacetKind,
    GroupDetail,
    GroupFacts,
    GroupFilter,
    GroupHour,
    GroupPrint,
    GroupRow,
    GroupSort,
    GroupState,
    Mute,
    NewState,
    Note,
    Split,
)
from service.groups.repository import counts as group_counts
from service.groups.repository.listing import ROW, most_expensive, mute_holds, page
from service.groups.tables import (
    group_facets,
    group_fingerprints,
    group_hours,
    group_mutes,
    group_notes,
    group_splits,
    groups,
)
from service.sql import bulk, paging
from service.sql.reader import TimedReader
from service.sql.types import HIGHEST_ID, clean, utc
from service.times import bounded

SHOWN = timedelta(days=28)
NOTES = 100
_BY_ID = select(*ROW).where(groups.c.id.in_(bindparam("ids", expanding=True)))
_BY_STATE = paging.bounded_counts(groups.c.state, get_args(GroupState), groups.c.merged_into.is_(None))


class GroupReader(TimedReader):
    """Reads groups."""

    def page(
        self,
        filters: GroupFilter | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        sort: GroupSort = "-last_at",
    ) -> Page[GroupRow]:
        """One page of groups, merged ones left out.

        Raises:
            InvalidInput: a limit out of range, an unknown sort or state, a cursor that is not of this list and sort.
        """
        now = utc(self._clock.now())
        return page(self._connection, filters or GroupFilter(), now=now, limit=limit, cursor=cursor, sort=sort)

    def most_expensive(self, filters: GroupFilter, limits: Mapping[GroupState, int]) -> list[GroupRow]:
        """Of each of these states its most expensive groups, at most as many as given, in the order of the states.

        The filters may give a user, node, team, queue and cluster; others are ignored.
        """
        return most_expensive(self._connection, filters, limits)

    def row(self, group_id: int) -> GroupRow:
        """One group's line.

        Raises:
            NotFound: no such group.
        """
        found = None
        if 0 < group_id <= HIGHEST_ID:
            found = self._connection.execute(select(*ROW).where(groups.c.id == group_id)).first()
        if found is None:
            raise NotFound(f"no group {group_id}")
        return GroupRow(*found)

    def rows(self, group_ids: Collection[int]) -> dict[int, GroupRow]:
        """The lines of the groups that exist, by id."""
        found = self._connection.execute(_BY_ID, {"ids": list(group_ids)})
        return {row.id: GroupRow(*row) for row in found}

    def get(self, group_id: int, *, actor: str | None = None) -> GroupDetail:
        """Everything stored about one group; `actor`: the person whose own mute is included.

        Raises:
            NotFound: no such group.
        """
        row = self.row(group_id)
        prints = tuple(
            GroupPrint(
                found.fingerprint,
                found.own_group,
                found.failures,
                found.gpu_hours_lost,
                found.first_at,
                found.last_at,
            )
            for found in self._connection.execute(
                select(group_fingerprints)
                .where(group_fingerprints.c.group_id == group_id)
                .order_by(group_fingerprints.c.last_at.desc())
            )
        )
        names = [one.fingerprint for one in prints]
        return GroupDetail(
            row=row,
            prints=prints,
            facets=self._facets(names),
            hours=self._hours(names, bounded(row.last_at) - SHOWN),
            notes=self.notes(group_id),
            splits=self.splits(names),
            muted_for_me=actor is not None and self._muted_for(actor, row),
        )

    def of(self, fingerprints: Collection[str]) -> dict[str, int]:
        """The group of each fingerprint that has one."""
        found = self._connection.execute(
            select(group_fingerprints.c.fingerprint, group_fingerprints.c.group_id).where(
                group_fingerprints.c.fingerprint.in_([clean(one[:200]) for one in fingerprints])
            )
        )
        return {row.fingerprint: row.group_id for row in found}

    def counts(self) -> dict[str, int]:
        """The number of groups in each state, without merged ones, up to the bound of `service.sql.paging`."""
        return paging.read_counts(self._connection, _BY_STATE)

    def splits(self, fingerprints: Collection[str]) -> tuple[Split, ...]:
        """The splits of these fingerprints, in the order in which they were made."""
        if not fingerprints:
            return ()
        found = self._connection.execute(
            select(group_splits)
            .where(
                bulk.one_of(self._connection, group_splits.c.fingerprint, [clean(one[:200]) for one in fingerprints])
            )
            .order_by(group_splits.c.id)
        )
        return tuple(Split(row.id, row.fingerprint, row.field, row.value) for row in found)

    def notes(self, group_id: int) -> tuple[Note, ...]:
        """Comments and actions, newest first."""
        found = self._connection.execute(
            select(group_notes).where(group_notes.c.group_id == group_id).order_by(group_notes.c.id.desc()).limit(NOTES)
        )
        return tuple(Note(row.id, row.at, row.who, row.kind, row.text) for row in found)

    def due(self, *, limit: int = 500) -> set[int]:
        """Groups whose state may have changed without new failures."""
        found = self._connection.execute(
            select(groups.c.id)
            .where(groups.c.review_at <= utc(self._clock.now()))
            .order_by(groups.c.review_at)
            .limit(limit)
        )
        return set(found.scalars())

    def facts(self, group_ids: Collection[int], *, window_h: float, past_d: float) -> list[GroupFacts]:
        """The inputs for the states of these groups."""
        now = utc(self._clock.now())
        begin = (now - timedelta(hours=window_h)).replace(minute=0, second=0, microsecond=0)
        oldest = begin - timedelta(days=past_d)
        counted: dict[int, tuple[int, int]] = {}
        is_recent = group_hours.c.hour >= begin
        for found in self._connection.execute(
            select(
                group_fingerprints.c.group_id,
                func.coalesce(func.sum(group_hours.c.failures).filter(is_recent), 0).label("recent"),
                func.coalesce(func.sum(group_hours.c.failures).filter(~is_recent), 0).label("past"),
            )
            .join(group_hours, group_hours.c.fingerprint == group_fingerprints.c.fingerprint)
            .where(group_fingerprints.c.group_id.in_(list(group_ids)), group_hours.c.hour >= oldest)
            .group_by(group_fingerprints.c.group_id)
        ):
            counted[found.group_id] = (int(found.recent), int(found.past))
        facts = []
        for row in self._connection.execute(select(*ROW).where(groups.c.id.in_(list(group_ids)))):
            group = GroupRow(*row)
            recent, past = counted.get(group.id, (0, 0))
            past_h = max(0.0, (begin - max(oldest, group.first_at)).total_seconds() / 3600)
            facts.append(GroupFacts(group, recent, past, past_h))
        return facts

    def hours_of(self, group_ids: Collection[int], since: datetime) -> dict[int, list[tuple[datetime, int]]]:
        """Of these groups the hours with failures since a time, and their failures, with one query."""
        found: dict[int, list[tuple[datetime, int]]] = {group_id: [] for group_id in group_ids}
        for row in self._connection.execute(
            select(group_fingerprints.c.group_id, group_hours.c.hour, group_hours.c.failures)
            .join(group_hours, group_hours.c.fingerprint == group_fingerprints.c.fingerprint)
            .where(group_fingerprints.c.group_id.in_(list(group_ids)), group_hours.c.hour >= utc(since))
        ):
            found[row.group_id].append((row.hour, int(row.failures)))
        return found

    def _muted_for(self, actor: str, row: GroupRow) -> bool:
        held = select(groups.c.id).where(
            groups.c.id == row.id, mute_holds(clean(actor[:200]), groups.c, utc(self._clock.now()))
        )
        return self._connection.execute(held).first() is not None

    def _facets(self, fingerprints: Sequence[str]) -> tuple[Facet, ...]:
        if not fingerprints:
            return ()
        total = func.sum(group_facets.c.failures).label("total")
        found: list[Facet] = []
        for kind in get_args(FacetKind):
            rows = self._connection.execute(
                select(group_facets.c.name, total)
                .where(group_facets.c.fingerprint.in_(list(fingerprints)), group_facets.c.kind == kind)
                .where(group_facets.c.name != group_counts.ANY_IMAGE)
                .group_by(group_facets.c.name)
                .having(total > 0)
                .order_by(total.desc(), group_facets.c.name)
                .limit(FACETS)
            )
            found += [Facet(kind, row.name, int(row.total)) for row in rows]
        return tuple(found)

    def image_shares(self, names: Collection[str]) -> dict[str, float]:
        """The share of each image among all failures whose image is known; both since images are counted."""
        wanted = [*sorted({clean(name) or "" for name in names}), group_counts.ANY_IMAGE]
        found = self._connection.execute(
            select(group_facets.c.name, group_facets.c.failures).where(
                group_facets.c.fingerprint == group_counts.ALL_FAILURES,
                group_facets.c.kind == group_counts.IMAGE,
                group_facets.c.name.in_(wanted),
            )
        )
        counts = {row.name: int(row.failures) for row in found if row.failures > 0}
        total = counts.pop(group_counts.ANY_IMAGE, 0)
        return {name: min(count / total, 1.0) for name, count in counts.items() if total}

    def with_image(self, group_id: int) -> int:
        """The failures of a group whose image is known."""
        known = (
            select(func.coalesce(func.sum(group_facets.c.failures), 0))
            .join(group_fingerprints, group_fingerprints.c.fingerprint == group_facets.c.fingerprint)
            .where(
                group_fingerprints.c.group_id == group_id,
                group_facets.c.kind == group_counts.IMAGE,
                group_facets.c.name == group_counts.ANY_IMAGE,
            )
        )
        return int(self._connection.execute(known).scalar_one())

    def _hours(self, fingerprints: Sequence[str], since: datetime) -> tuple[GroupHour, ...]:
        if not fingerprints:
            return ()
        found = self._connection.execute(
            select(
                group_hours.c.hour,
                func.sum(group_hours.c.failures).label("failures"),
                func.sum(group_hours.c.gpu_hours_lost).label("lost"),
            )
            .where(group_hours.c.fingerprint.in_(list(fingerprints)), group_hours.c.hour >= utc(since))
            .group_by(group_hours.c.hour)
            .order_by(group_hours.c.hour)
        )
        return tuple(GroupHour(row.hour, int(row.failures), float(row.lost)) for row in found)


class GroupRepository(GroupReader):
    """Reads and writes groups."""

    def lock_moves(self) -> None:
        """Wait until no other transaction moves fingerprints between groups or counts failures; then none can."""
        group_counts.lock_moves(self._connection)

    def locked(self, group_ids: Collection[int]) -> set[int]:
        """Those of the groups that no other transaction changes; none can until this one ends."""
        wanted = select(groups.c.id).where(groups.c.id.in_(list(group_ids)))
        return set(self._connection.execute(wanted.order_by(groups.c.id).with_for_update(skip_locked=True)).scalars())

    def change(self, group_id: int, **values: Any) -> None:
        """Set columns of one group."""
        self._connection.execute(update(groups).where(groups.c.id == group_id).values(values))

    def note(self, group_id: int, actor: str, kind: str, text: str) -> None:
        """Add a comment or an action to the history."""
        self._connection.execute(
            insert(group_notes).values(
                group_id=group_id, at=utc(self._clock.now()), who=clean(actor[:200]), kind=kind, text=clean(text)
            )
        )

    def mute_for(self, actor: str, group_id: int, mute: Mute | None) -> None:
        """Mute a group for one person until the condition is met; None ends the mute."""
        own = and_(group_mutes.c.who == clean(actor[:200]), group_mutes.c.group_id == group_id)
        self._connection.execute(group_mutes.delete().where(own))
        if mute is not None:
            self._connection.execute(
                insert(group_mutes).values(
                    who=clean(actor[:200]),
                    group_id=group_id,
                    muted_until=mute.until,
                    muted_failures=mute.failures,
                    muted_users=mute.users,
                )
            )

    def move(self, fingerprints: Sequence[str], group_id: int) -> None:
        """Move fingerprints, with all their earlier and later failures, into a group."""
        table = group_fingerprints
        left = set(
            self._connection.execute(
                select(table.c.group_id).where(table.c.fingerprint.in_(list(fingerprints)))
            ).scalars()
        )
        self._connection.execute(
            update(table).where(table.c.fingerprint.in_(list(fingerprints))).values(group_id=group_id)
        )
        group_counts.recount(self._connection, left | {group_id})

    def split(self, fingerprint: str, field: str, value: str, actor: str) -> Split:
        """Store that failures of a fingerprint whose `field` is `value` are a separate kind."""
        made = self._connection.execute(
            insert(group_splits)
            .values(
                fingerprint=clean(fingerprint[:200]),
                field=field,
                value=clean(value[:200]),
                at=utc(self._clock.now()),
                who=clean(actor[:200]),
            )
            .returning(group_splits)
        ).one()
        return Split(made.id, made.fingerprint, made.field, made.value)

    def regroup(self, split: Split) -> int:
        """Give some failures of a split their refined fingerprint; returns how many, 0 when all have it."""
        return group_counts.regroup(self._connection, split)

    def fold(self, *, limit: int = group_counts.DELTAS_PER_TRANSACTION) -> set[int] | None:
        """Count appended failures; returns the groups that changed, None if there was nothing to do."""
        return group_counts.fold(self._connection, self._clock.now(), limit=limit)

    def store_states(self, found: Sequence[NewState]) -> None:
        """Store the computed states of groups."""
        group_counts.write_states(self._connection, found)


def refined(fingerprint: str, facts: Mapping[str, str | None], splits: Sequence[Split]) -> str:
    """The fingerprint of a failure after the splits; `facts`: its cluster, queue, team, user, node."""
    for split in splits:
        if split.fingerprint == fingerprint and facts.get(split.field) == split.value:
            fingerprint = split.refined
    return fingerprint
