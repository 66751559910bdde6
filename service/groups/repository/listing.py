"""The list of groups: filters, order and keyset paging; each page reads a bounded part of one index."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, get_args

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Subquery,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from service.contracts.page import Page
from service.errors import FieldError, InvalidInput
from service.groups.records import GroupFilter, GroupRow, GroupSort, GroupState
from service.groups.tables import group_facets, group_fingerprints, group_hours, group_mutes, groups
from service.sql import bulk
from service.sql import paging as cursors
from service.sql.types import UtcDateTime, clean, utc
from service.times import MAX_TIME

FEW = 500  # groups with a name: up to this number they are looked up by it
WINDOW = 5_000  # the most groups that a page reads
ROW = tuple(groups.c[name] for name in GroupRow.__slots__)
_Columns = ReadOnlyColumnCollection[str, Any]
_EQUAL = ("side", "cause", "assignee")
_FACETS = ("user", "node", "team", "queue", "cluster")


def page(
    connection: Connection, filters: GroupFilter, *, now: datetime, limit: int, cursor: str | None, sort: GroupSort
) -> Page[GroupRow]:
    """See `GroupReader.page`."""
    cursors.check_limit(limit)
    for name, value, known in (
        ("sort", sort, get_args(GroupSort)),
        ("state", filters.state, (None, *get_args(GroupState))),
    ):
        if value not in known:
            expected = "one of " + ", ".join(one for one in known if one)
            raise InvalidInput(f"{name}: expected {expected}", (FieldError(name, expected, str(value)[:40]),))
    by_cost = sort == "-gpu_hours_lost"
    hit, common = _hit(connection, filters)
    edge = None if cursor is None else _edge(cursor, sort, by_cost=by_cost)
    window = _window(filters, hit, edge, by_cost=by_cost)
    conditions = _conditions(filters, window.c, common, now)
    rows = connection.execute(_first(window, conditions, limit + 1, postgres=bulk.is_postgres(connection))).all()
    items = tuple(GroupRow(*row[:-1]) for row in rows[:limit])
    last: Any = items[-1] if len(rows) > limit else None
    if last is None:
        if not conditions:
            return Page(items)  # the whole window fits on the page
        end = select(window.c.id, window.c.gpu_hours_lost, window.c.last_at).order_by(window.c.place, window.c.id)
        count = select(func.count()).select_from(window)
        if connection.execute(count).scalar_one() < WINDOW:
            return Page(items)
        last = connection.execute(end.limit(1)).one()
    position = last.gpu_hours_lost if by_cost else last.last_at.isoformat()
    return Page(items, cursors.encode(f"groups{sort}", position, last.id))


def most_expensive(connection: Connection, filters: GroupFilter, limits: Mapping[GroupState, int]) -> list[GroupRow]:
    """Of each of these states its most expensive groups, at most as many as given, in one query.

    The filters may give a user, node, team, queue and cluster; others are ignored.
    """
    hit, common = _hit(connection, filters)
    kinds = tuple(kind for kind, _ in common)
    statement = _of_states(
        tuple(limits.items()), kinds, looked_up=hit is not None, postgres=bulk.is_postgres(connection)
    )
    values = {**dict(common), **({} if hit is None else {"hit": hit})}
    found = [GroupRow(*row[:-1]) for row in connection.execute(statement, values)]
    places = {state: place for place, state in enumerate(limits)}
    return sorted(found, key=lambda row: (places[row.state], -row.gpu_hours_lost, -row.id))


@lru_cache(100)
def _of_states(
    limits: tuple[tuple[GroupState, int], ...], kinds: tuple[str, ...], *, looked_up: bool, postgres: bool
) -> CompoundSelect[Any]:
    """The query of `most_expensive`, made once: making it takes longer than the database takes to answer it.

    Its parameters are `hit`, if groups were `looked_up` by a name, and the name of each of `kinds`.
    """
    hit = bindparam("hit", expanding=True, type_=groups.c.id.type) if looked_up else None
    common = [(kind, bindparam(kind, type_=group_facets.c.name.type)) for kind in kinds]
    parts = []
    for state, most in limits:
        own = GroupFilter(state=state)
        window = _window(own, hit, None, by_cost=True)
        parts.append(_first(window, _conditions(own, window.c, common), most, postgres=postgres).subquery())
    return union_all(*(select(part) for part in parts))


def _window(
    filters: GroupFilter,
    hit: Sequence[int] | BindParameter[Any] | None,
    edge: ColumnElement[Any] | None,
    *,
    by_cost: bool,
) -> Subquery:
    """The first `WINDOW` groups of an index after `edge`: for orders without one, the cursor continues after them."""
    at: ColumnElement[Any] = groups.c.gpu_hours_lost if by_cost else groups.c.last_at
    inside: list[ColumnElement[bool]] = [groups.c.merged_into.is_(None)]
    if filters.state is not None:
        inside.append(groups.c.state == filters.state)
    if filters.since is not None and not by_cost:
        inside.append(groups.c.last_at >= utc(filters.since))  # where this order's index ends
    if filters.novel and by_cost:
        inside.append(groups.c.abstained)  # this order has its own index
    if hit is not None:
        inside.append(groups.c.id.in_(hit))
    if edge is not None:
        inside.append(tuple_(at, groups.c.id) < edge)
    ordered = select(*ROW, at.label("place")).where(*inside).order_by(at.desc(), groups.c.id.desc())
    return ordered.limit(WINDOW).subquery("searched")


def _first(window: Subquery, conditions: Sequence[ColumnElement[bool]], most: int, *, postgres: bool) -> Select[Any]:
    """The first groups of a window that meet the conditions."""
    wanted = select(window).where(*conditions).limit(most)
    if postgres:
        # SQLite reads a limited subquery in its own order; asked for that order again, it would test the whole window.
        wanted = wanted.order_by(window.c.place.desc(), window.c.id.desc())
    return wanted


def _hit(connection: Connection, filters: GroupFilter) -> tuple[list[int] | None, list[tuple[str, str]]]:
    """The groups that match a name filter, if they are few (otherwise None), and the remaining conditions."""
    known: list[int] | None = None
    common: list[tuple[str, str]] = []
    for kind in _FACETS:
        name = getattr(filters, kind)
        if name is None:
            continue
        if known is None:
            found = list(
                connection.execute(
                    select(group_fingerprints.c.group_id)
                    .join(group_facets, group_facets.c.fingerprint == group_fingerprints.c.fingerprint)
                    .where(
                        group_facets.c.kind == kind,
                        group_facets.c.name == clean(name),
                        group_facets.c.failures > 0,
                    )
                    .limit(FEW + 1)
                ).scalars()
            )
            if len(found) <= FEW:
                known = sorted(set(found))
                continue
        common.append((kind, clean(name)))
    return known, common


def _conditions(
    filters: GroupFilter,
    of: _Columns,
    hits: Sequence[tuple[str, str | BindParameter[Any]]],
    now: datetime = MAX_TIME,
) -> list[ColumnElement[bool]]:
    conditions = [of[name] == clean(value) for name in _EQUAL if (value := getattr(filters, name)) is not None]
    for kind, name in hits:
        # A scalar query on purpose: no planner turns it into a join with all matches of a common name.
        hit = (
            select(func.max(group_facets.c.failures))
            .select_from(
                group_fingerprints.join(group_facets, group_facets.c.fingerprint == group_fingerprints.c.fingerprint)
            )
            .where(group_fingerprints.c.group_id == of.id, group_facets.c.kind == kind, group_facets.c.name == name)
        )
        conditions.append(hit.scalar_subquery() > 0)
    if filters.novel:
        conditions += [of.abstained, of.state != "resolved"]
    if filters.since is not None:
        conditions.append(of.last_at >= utc(filters.since))
    if filters.until is not None:
        conditions.append(of.first_at < utc(filters.until))
        if filters.since is not None:
            conditions.append(_failed_within(of, utc(filters.since), utc(filters.until)))
    if filters.hidden_from is not None:
        conditions.append(~mute_holds(clean(filters.hidden_from[:200]), of, now))
    return conditions


def _failed_within(of: _Columns, since: datetime, until: datetime) -> ColumnElement[bool]:
    """Whether a group (with columns `of`) has a failure in the hours of a period."""
    prints, hours = group_fingerprints.c, group_hours.c
    within = (hours.hour >= since.replace(minute=0, second=0, microsecond=0), hours.hour < until)
    most = (
        select(func.max(hours.failures))
        .select_from(group_fingerprints.join(group_hours, hours.fingerprint == prints.fingerprint))
        .where(prints.group_id == of.id, *within)
    )
    return most.scalar_subquery() > 0


def mute_holds(actor: str, of: _Columns, now: datetime) -> ColumnElement[bool]:
    """Whether a person muted a group (with columns `of`) for themselves, and the condition is not met yet."""
    at = literal(now, UtcDateTime)
    mine = group_mutes.c
    return exists().where(
        mine.who == actor,
        mine.group_id == of.id,
        or_(mine.muted_until.is_(None), mine.muted_until > at),
        or_(mine.muted_failures.is_(None), mine.muted_failures > of.failures),
        or_(mine.muted_users.is_(None), mine.muted_users > of.users),
    )


def _edge(cursor: str, sort: GroupSort, *, by_cost: bool) -> ColumnElement[Any]:
    position, last = cursors.decode(cursor, f"groups{sort}", float if by_cost else str, int)
    if by_cost:
        return tuple_(literal(position), literal(last))
    return tuple_(literal(cursors.instant(cursor, position), UtcDateTime), literal(last))
