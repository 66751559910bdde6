"""Counts appended failures into groups: by one process at a time, in small transactions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, case, delete, func, insert, select, update

from service.errors import DamagedData, damage_translated
from service.failures.tables import failures, logs
from service.groups.records import NewState, Split
from service.groups.tables import group_deltas, group_facets, group_fingerprints, groups
from service.jobs.tables import jobs
from service.sql import bulk
from service.sql.packing import unpack
from service.sql.types import short

DELTAS_PER_TRANSACTION = 2_000
_FOLD_LOCK = 0x666F6C64  # "fold"
_KINDS = {"cluster": "cluster", "queue": "queue", "team": "team", "user": "user_name", "node": "suspect_node"}
IMAGE = "image"
# The counts of images over all failures, beside those of fingerprints; their sum has no name.
ALL_FAILURES, ANY_IMAGE = "", ""

# An end that lies ahead of its arrival is by a wrong clock: a group would come back, and be the latest, for ever.
_SEEN_AT = case((jobs.c.received_at < failures.c.ended_at, jobs.c.received_at), else_=failures.c.ended_at)


# Written in SQL, one statement for all rows (PostgreSQL) or prepared once (SQLite): 2,000 failures of as many kinds are
# about 16,000 rows here.
_PRINTS = bulk.BulkStatement(
    {
        "fingerprint": "text",
        "failures": "bigint",
        "lost": "float8",
        "first_at": "timestamptz",
        "last_at": "timestamptz",
    },
    "UPDATE group_fingerprints SET failures = group_fingerprints.failures + given.failures, "
    "gpu_hours_lost = gpu_hours_lost + given.lost, "
    "first_at = {least}(group_fingerprints.first_at, given.first_at), "
    "last_at = {greatest}(group_fingerprints.last_at, given.last_at) "
    "FROM {given} WHERE group_fingerprints.fingerprint = given.fingerprint",
)
_HOURS = bulk.BulkStatement(
    {"fingerprint": "text", "hour": "timestamptz", "failures": "bigint", "lost": "float8"},
    "INSERT INTO group_hours (fingerprint, hour, failures, gpu_hours_lost) "
    "SELECT fingerprint, hour, failures, lost FROM {given} WHERE true "
    "ON CONFLICT (fingerprint, hour) DO UPDATE SET failures = group_hours.failures + excluded.failures, "
    "gpu_hours_lost = group_hours.gpu_hours_lost + excluded.gpu_hours_lost",
)
_FACETS = bulk.BulkStatement(
    {"fingerprint": "text", "kind": "text", "name": "text", "failures": "bigint"},
    "INSERT INTO group_facets (fingerprint, kind, name, failures) "
    "SELECT fingerprint, kind, name, failures FROM {given} WHERE true "
    "ON CONFLICT (fingerprint, kind, name) DO UPDATE SET failures = group_facets.failures + excluded.failures",
)
_GROUPS = bulk.BulkStatement(
    {
        "id": "bigint",
        "failures": "bigint",
        "lost": "float8",
        "users": "bigint",
        "first_at": "timestamptz",
        "last_at": "timestamptz",
        "last_id": "bigint",
        "side": "text",
        "cause": "text",
        "abstained": "boolean",
        "review_at": "timestamptz",
    },
    "UPDATE groups SET failures = groups.failures + given.failures, "
    "gpu_hours_lost = groups.gpu_hours_lost + given.lost, users = given.users, "
    "first_at = {least}(groups.first_at, given.first_at), last_at = {greatest}(groups.last_at, given.last_at), "
    "side = CASE WHEN given.last_id >= groups.last_id AND groups.labelled_at IS NULL "
    "THEN given.side ELSE groups.side END, "
    "cause = CASE WHEN given.last_id >= groups.last_id AND groups.labelled_at IS NULL "
    "THEN given.cause ELSE groups.cause END, "
    "abstained = CASE WHEN given.last_id >= groups.last_id AND groups.labelled_at IS NULL "
    "THEN given.abstained ELSE groups.abstained END, "
    "last_id = {greatest}(groups.last_id, given.last_id), review_at = given.review_at "
    "FROM {given} WHERE groups.id = given.id",
)


_STATES = bulk.BulkStatement(
    {
        "id": "bigint",
        "state": "text",
        "state_since": "timestamptz",
        "recent": "bigint",
        "expected": "float8",
        "chance": "float8",
        "review_at": "timestamptz",
    },
    "UPDATE groups SET state = given.state, state_since = given.state_since, recent = given.recent, "
    "expected = given.expected, chance = given.chance, review_at = given.review_at FROM {given} "
    "WHERE groups.id = given.id",
)


def write_states(connection: Connection, found: Sequence[NewState]) -> None:
    """Store the computed states of groups."""
    bulk.write(connection, _STATES, [{name: getattr(one, name) for name in _STATES.columns} for one in found])


def lock_moves(connection: Connection) -> None:
    """Wait until no other transaction counts failures or has this lock; hold it until this one ends."""
    bulk.lock(connection, [_FOLD_LOCK])


def fold(connection: Connection, now: datetime, *, limit: int = DELTAS_PER_TRANSACTION) -> set[int] | None:
    """Count appended failures; returns the groups that changed. None: nothing to do, or another process does it."""
    if bulk.is_postgres(connection):
        free = connection.exec_driver_sql("SELECT pg_try_advisory_xact_lock(%s)", (_FOLD_LOCK,)).scalar_one()
        if not free:
            return None
    rows = connection.execute(
        select(
            group_deltas.c.id.label("delta"),
            group_deltas.c.fingerprint.label("print"),
            group_deltas.c.sign,
            failures.c.id,
            _SEEN_AT.label("ended_at"),
            failures.c.gpu_hours_lost,
            failures.c.cluster,
            failures.c.queue,
            failures.c.team,
            failures.c.user_name,
            failures.c.suspect_node,
            failures.c.side,
            failures.c.cause,
            failures.c.abstained,
            failures.c.headline,
            logs.c.event,
        )
        .join_from(group_deltas, failures, failures.c.id == group_deltas.c.failure_id, isouter=True)
        .outerjoin(jobs, jobs.c.id == failures.c.id)
        .outerjoin(logs, and_(logs.c.failure_id == failures.c.id, logs.c.attempt_id == failures.c.id))
        .order_by(group_deltas.c.id)
        .limit(limit)
    ).all()
    if not rows:
        return None
    connection.execute(delete(group_deltas).where(group_deltas.c.id.in_([row.delta for row in rows])))
    by_print: defaultdict[str, list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for row in rows:
        if row.id is not None:  # otherwise retention has removed the failure
            by_print[row.print].append(row)
    group_of = _groups_of(connection, by_print, now)
    _count(connection, by_print)
    touched: defaultdict[int, list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for fingerprint, found in by_print.items():
        touched[group_of[fingerprint]].extend(found)
    _add_up(connection, touched, now)
    return set(touched)


def recount(connection: Connection, group_ids: Iterable[int]) -> None:
    """Sum up a group's counts from its fingerprints again, after one was added or removed."""
    for group_id in group_ids:
        own = group_fingerprints.c.group_id == group_id
        totals = connection.execute(
            select(
                func.coalesce(func.sum(group_fingerprints.c.failures), 0).label("failures"),
                func.coalesce(func.sum(group_fingerprints.c.gpu_hours_lost), 0.0).label("lost"),
                func.min(group_fingerprints.c.first_at).label("first_at"),
                func.max(group_fingerprints.c.last_at).label("last_at"),
            ).where(own)
        ).one()
        values: dict[str, Any] = {"failures": int(totals.failures), "gpu_hours_lost": float(totals.lost)}
        if totals.first_at is not None:
            values |= {"first_at": totals.first_at, "last_at": totals.last_at}
        values["users"] = _users(connection, [group_id]).get(group_id, 0)
        connection.execute(update(groups).where(groups.c.id == group_id).values(values))


def regroup(connection: Connection, split: Split, *, limit: int = 500) -> int:
    """Move failures to the fingerprint that was split off; returns how many, at most `limit`."""
    column = failures.c[_KINDS[split.field]]
    ids = list(
        connection.execute(
            select(failures.c.id)
            .where(failures.c.fingerprint == split.fingerprint, column == split.value)
            .order_by(failures.c.ended_at.desc())
            .limit(limit)
            .with_for_update()
        ).scalars()
    )
    if ids:
        connection.execute(update(failures).where(failures.c.id.in_(ids)).values(fingerprint=split.refined))
        moved = [(one, name, sign) for one in ids for name, sign in ((split.fingerprint, -1), (split.refined, 1))]
        bulk.append(connection, group_deltas, ("failure_id", "fingerprint", "sign"), moved)
    return len(ids)


def _groups_of(
    connection: Connection, by_print: Mapping[str, Sequence[Row[*tuple[Any, ...]]]], now: datetime
) -> dict[str, int]:
    """The group of each fingerprint; an unknown fingerprint creates its own group."""
    known = {
        row[0]: row[1]
        for row in bulk.by_keys(
            connection, "fingerprint, group_id", "group_fingerprints", list(by_print), key="fingerprint"
        )
    }
    fresh = [fingerprint for fingerprint in by_print if fingerprint not in known]
    if not fresh:
        return known
    made = connection.execute(
        insert(groups).returning(groups.c.id, groups.c.fingerprint),
        [_new_group(fingerprint, by_print[fingerprint], now) for fingerprint in fresh],
    )
    fresh_ids = {row.fingerprint: row.id for row in made}
    connection.execute(
        insert(group_fingerprints),
        [
            {
                "fingerprint": fingerprint,
                "group_id": group_id,
                "own_group": group_id,
                "failures": 0,
                "gpu_hours_lost": 0.0,
                "first_at": min(row.ended_at for row in by_print[fingerprint]),
                "last_at": max(row.ended_at for row in by_print[fingerprint]),
            }
            for fingerprint, group_id in fresh_ids.items()
        ],
    )
    return known | fresh_ids


def _new_group(fingerprint: str, rows: Sequence[Row[*tuple[Any, ...]]], now: datetime) -> dict[str, Any]:
    first, last = min(rows, key=lambda row: row.ended_at), max(rows, key=lambda row: row.id)
    return {
        "made_at": now,
        "fingerprint": fingerprint,
        "state": "new",
        "state_since": first.ended_at,
        "title": first.headline,
        "side": last.side,
        "cause": last.cause,
        "abstained": last.abstained,
        "first_id": first.id,
        "last_id": last.id,
        "first_at": first.ended_at,
        "last_at": max(row.ended_at for row in rows),
        "failures": 0,
        "users": 0,
        "gpu_hours_lost": 0.0,
        "review_at": now,
    }


def _count(connection: Connection, by_print: Mapping[str, Sequence[Row[*tuple[Any, ...]]]]) -> None:
    hours: Counter[tuple[str, datetime]] = Counter()
    lost: defaultdict[tuple[str, datetime], float] = defaultdict(float)
    facets: Counter[tuple[str, str, str]] = Counter()
    prints = []
    for fingerprint, rows in by_print.items():
        for row in rows:
            at = (fingerprint, row.ended_at.replace(minute=0, second=0, microsecond=0))
            hours[at] += row.sign
            lost[at] += row.sign * row.gpu_hours_lost
            for kind, name in _KINDS.items():
                value = getattr(row, name)
                if value is not None:
                    facets[fingerprint, kind, value] += row.sign
            image = _image(row.event)
            if image:
                for where in (fingerprint, ALL_FAILURES):
                    facets[where, IMAGE, image] += row.sign
                    facets[where, IMAGE, ANY_IMAGE] += row.sign
        prints.append(
            {
                "fingerprint": fingerprint,
                "failures": sum(row.sign for row in rows),
                "lost": sum(row.sign * row.gpu_hours_lost for row in rows),
                "first_at": min(row.ended_at for row in rows),
                "last_at": max(row.ended_at for row in rows),
            }
        )
    bulk.write(connection, _PRINTS, prints)
    bulk.write(
        connection,
        _HOURS,
        [
            {"fingerprint": at[0], "hour": at[1], "failures": count, "lost": lost[at]}
            for at, count in sorted(hours.items())
        ],
    )
    bulk.write(
        connection,
        _FACETS,
        [
            {"fingerprint": fingerprint, "kind": kind, "name": name, "failures": count}
            for (fingerprint, kind, name), count in sorted(facets.items())
        ],
    )


def _image(event: bytes | None) -> str:
    """The container image of a failure's first attempt; empty if it is not known, or the event is damaged."""
    image = None
    with suppress(DamagedData), damage_translated():
        image = None if event is None else unpack(event).get("image")
    return (short(image) or "") if isinstance(image, str) else ""


def _add_up(connection: Connection, touched: Mapping[int, Sequence[Row[*tuple[Any, ...]]]], now: datetime) -> None:
    """Update the counts of the groups, and their label from the newest failure unless a person labelled them."""
    if not touched:
        return
    users = _users(connection, list(touched))
    changes = []
    for group_id, rows in touched.items():
        newest = max(rows, key=lambda row: (row.sign > 0, row.id))
        changes.append(
            {
                "id": group_id,
                "failures": sum(row.sign for row in rows),
                "lost": sum(row.sign * row.gpu_hours_lost for row in rows),
                "users": users.get(group_id, 0),
                "first_at": min(row.ended_at for row in rows),
                "last_at": max(row.ended_at for row in rows),
                "last_id": newest.id if newest.sign > 0 else 0,
                "side": newest.side,
                "cause": newest.cause,
                "abstained": bool(newest.abstained),
                "review_at": now - timedelta(days=1),
            }
        )
    bulk.write(connection, _GROUPS, changes)


def _users(connection: Connection, group_ids: Sequence[int]) -> dict[int, int]:
    found = connection.execute(
        select(group_fingerprints.c.group_id, func.count(group_facets.c.name.distinct()).label("users"))
        .join(group_facets, group_facets.c.fingerprint == group_fingerprints.c.fingerprint)
        .where(
            group_fingerprints.c.group_id.in_(list(group_ids)),
            group_facets.c.kind == "user",
            group_facets.c.failures > 0,
        )
        .group_by(group_fingerprints.c.group_id)
    )
    return {row.group_id: row.users for row in found}
