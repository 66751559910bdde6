"""The labels of each group that people gave, until they are withdrawn."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select

from service.errors import damage_translated
from service.feedback.records import GroupLabel
from service.feedback.tables import group_labels
from service.sql.bulk import upsert
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import clean, utc

MOST = 20  # labels of one group; older ones can't be withdrawn


class GroupLabelReader(TimedReader):
    """Reads labels of groups."""

    def of(self, group_id: int) -> tuple[GroupLabel, ...]:
        """The labels of a group that were not withdrawn, the latest first; at most 20."""
        row = self._connection.execute(select(group_labels).where(group_labels.c.group_id == group_id)).first()
        return () if row is None else tuple(reversed(_labels(row)))


class GroupLabelRepository(GroupLabelReader):
    """Reads and writes labels of groups."""

    def put(self, label: GroupLabel) -> None:
        """Store a label as the latest one of its group."""
        self._store(label.group_id, [*self._locked(label.group_id), label])

    def hold(self, group_id: int, number: int) -> bool:
        """Lock the labels of a group until the transaction ends; whether it has this one."""
        return any(one.number == number for one in self._locked(group_id))

    def remove(self, group_id: int, number: int) -> tuple[GroupLabel, bool] | None:
        """Remove a label.

        Returns:
            The label, and whether it was the latest of its group; None if it is not stored (any more).
        """
        found = self._locked(group_id)
        place = next((place for place, one in enumerate(found) if one.number == number), None)
        if place is None:
            return None
        taken = found.pop(place)
        if place < len(found):  # what the next label replaced is what this one had replaced
            found[place] = replace(found[place], before=taken.before)
        self._store(group_id, found)
        return taken, place == len(found)

    def _locked(self, group_id: int) -> list[GroupLabel]:
        """The labels of a group, oldest first, locked until this transaction ends."""
        wanted = select(group_labels).where(group_labels.c.group_id == group_id).with_for_update()
        row = self._connection.execute(wanted).first()
        return [] if row is None else _labels(row)

    def _store(self, group_id: int, found: Sequence[GroupLabel]) -> None:
        if not found:
            self._connection.execute(delete(group_labels).where(group_labels.c.group_id == group_id))
            return
        *earlier, latest = found[-MOST:]
        side, cause, abstained, labelled_at = latest.before
        values = {
            "at": utc(latest.at),
            "who": clean(latest.who[:200]),
            "cause": latest.cause,
            "side_before": side,
            "cause_before": cause,
            "abstained_before": abstained,
            "labelled_before": labelled_at,
            "judgements": pack([list(pair) for pair in latest.judgements]),
            "earlier": pack([_packed(one) for one in earlier]) if earlier else None,
        }
        writing = upsert(self._connection, group_labels).values({"group_id": group_id, **values})
        self._connection.execute(writing.on_conflict_do_update(index_elements=["group_id"], set_=values))


@damage_translated()
def _labels(row: Row[Any]) -> list[GroupLabel]:
    """All labels of a row, oldest first."""
    before = (row.side_before, row.cause_before, row.abstained_before, row.labelled_before)
    latest = GroupLabel(row.group_id, row.at, row.who, row.cause, before, _pairs(unpack(row.judgements)))
    earlier = [] if row.earlier is None else [_unpacked(row.group_id, one) for one in unpack(row.earlier)]
    return [one for one in (*earlier, latest) if one.judgements]


def _packed(label: GroupLabel) -> list[Any]:
    side, cause, abstained, labelled_at = label.before
    at = None if labelled_at is None else labelled_at.isoformat()
    pairs = [list(pair) for pair in label.judgements]
    return [label.at.isoformat(), clean(label.who[:200]), label.cause, [side, cause, abstained, at], pairs]


def _unpacked(group_id: int, value: Sequence[Any]) -> GroupLabel:
    at, who, cause, (side, cause_before, abstained, labelled_at), pairs = value
    before_at = None if labelled_at is None else datetime.fromisoformat(labelled_at)
    before = (side, cause_before, bool(abstained), before_at)
    return GroupLabel(group_id, datetime.fromisoformat(at), who, cause, before, _pairs(pairs))


def _pairs(value: Sequence[Sequence[Any]]) -> list[tuple[int, int]]:
    return [(int(failure), int(number)) for failure, number in value]
