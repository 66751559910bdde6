"""Versions of the verdicts of stored failures: their columns, and new versions of many failures at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, update

from service.failures.records import Source
from service.failures.repository import search
from service.failures.tables import failures, verdicts
from service.groups.tables import group_deltas
from service.nodes.repository import work_queue
from service.sql import bulk
from service.sql.bulk import chunks
from service.sql.packing import pack
from service.sql.types import HIGHEST_ID, clean, short, utc
from service.statistics.repository import rollups

HEADLINE: Final = 300  # characters
VERDICT_COLUMNS = (
    *("version", "source", "side", "cause", "category", "symptom", "platform_symptom", "confidence", "abstained"),
    *("retry_outlook", "fingerprint", "decision", "resubmit", "headline", "suspect_node", "suspect_rank"),
)
VERSION_COLUMNS = ("failure_id", "version", "at", "source", "model", "rules", "policy", "body")
DELTA_COLUMNS = ("failure_id", "fingerprint", "sign")
_CURRENT = ("id", "version", "source", "ended_at", "fingerprint", "side", "cause", "abstained")
_IDS_OF_WORK_ITEM = 100  # failures of one work item, so that its transaction is short


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The current version of a failure's verdict, locked until the transaction ends."""

    failure_id: int
    version: int
    source: Source
    ended_at: datetime
    fingerprint: str
    side: str
    cause: str
    abstained: bool


@dataclass(frozen=True, slots=True)
class NewVersion:
    """The next version of a failure's verdict: `verdict` is verdict/1, `source` who gave it."""

    current: CurrentVersion
    source: Source
    verdict: Mapping[str, Any]


def lock(connection: Connection, failure_ids: Sequence[int]) -> dict[int, CurrentVersion]:
    """The current version of each failure that is stored, locked until the transaction ends."""
    found: dict[int, CurrentVersion] = {}
    for some in chunks(sorted(one for one in failure_ids if 0 < one <= HIGHEST_ID)):
        wanted = (
            select(
                *(failures.c[name] for name in _CURRENT),
            )
            .where(failures.c.id.in_(some))
            .order_by(failures.c.id)  # transactions that lock several failures do so in one order
            .with_for_update()
        )
        found |= {row.id: CurrentVersion(*row) for row in connection.execute(wanted)}
    return found


def add(connection: Connection, new: Sequence[NewVersion], at: datetime) -> None:
    """Store new versions and make them current."""
    if not new:
        return
    now = utc(at)
    values = {name: bindparam(f"new_{name}", type_=failures.c[name].type) for name in VERDICT_COLUMNS}
    connection.execute(
        update(failures).where(failures.c.id == bindparam("of_failure")).values(values),
        [_update_of(one) for one in new],
    )
    ids = [one.current.failure_id for one in new]
    bulk.append(
        connection,
        verdicts,
        VERSION_COLUMNS,
        (row_of_version(one.current.failure_id, one.current.version + 1, now, one.source, one.verdict) for one in new),
    )
    rollups.mark_stale(connection, [one.current.ended_at for one in new])
    for some in chunks(ids, _IDS_OF_WORK_ITEM):
        work_queue.note(connection, "failures", some)
    search.remove(connection, ids)
    search.add(connection, [(one.current.failure_id, search.searchable_text(one.verdict)) for one in new])
    moved: list[bulk.Row] = []
    for one in new:
        before, after = one.current.fingerprint, short(one.verdict["fingerprint"])
        # With the same fingerprint the counts stay, and the group takes over what its newest failure says now.
        if after != before or _label_of(one.verdict) != (one.current.side, one.current.cause, one.current.abstained):
            moved += [(one.current.failure_id, before, -1), (one.current.failure_id, after, 1)]
    bulk.append(connection, group_deltas, DELTA_COLUMNS, moved)


def _label_of(verdict: Mapping[str, Any]) -> tuple[str, str, bool]:
    return verdict["side"], verdict["cause"], bool(verdict["abstained"])


def _update_of(one: NewVersion) -> dict[str, Any]:
    fields = fields_of(one.verdict, one.current.version + 1, one.source)
    named = {f"new_{name}": value for name, value in zip(VERDICT_COLUMNS, fields, strict=True)}
    return {"of_failure": one.current.failure_id, **named}


def headline(verdict: Mapping[str, Any]) -> str:
    """The most significant line: the first initiating evidence, else the first evidence, else the explanation."""
    evidence = verdict.get("evidence") or ()
    best = next((line for line in evidence if line.get("role") == "initiating"), None) or next(iter(evidence), None)
    text = best["text"] if best is not None else verdict.get("explanation") or ""
    return clean(text[:HEADLINE])


def fields_of(verdict: Mapping[str, Any], version: int, source: Source) -> tuple[Any, ...]:
    """The values of `VERDICT_COLUMNS`, in that order."""
    suspect = verdict.get("suspect") or {}
    return (
        version,
        source,
        verdict["side"],
        verdict["cause"],
        verdict.get("category"),
        verdict.get("symptom"),
        verdict.get("platform_symptom"),
        float(verdict["confidence"]),
        bool(verdict["abstained"]),
        verdict.get("retry_outlook"),
        short(verdict["fingerprint"]),
        verdict["decision"],
        bool(verdict["resubmit"]),
        headline(verdict),
        short(suspect.get("node")),
        suspect.get("rank"),
    )


def row_of_version(
    failure_id: int | None, version: int, at: datetime, source: Source, verdict: Mapping[str, Any]
) -> bulk.Row:
    """The values of `VERSION_COLUMNS`, in that order."""
    made_by = (short(str(verdict.get(name) or ""), 100) for name in ("model", "rules", "policy"))
    return (failure_id, version, at, source, *made_by, pack(verdict))
