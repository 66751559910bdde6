"""The latest label of each group that a person gave, until it is withdrawn."""

from sqlalchemy import Connection, delete, select

from service.clock import Clock
from service.feedback.records import GroupLabel
from service.feedback.tables import group_labels
from service.sql.packing import pack, unpack
from service.sql.types import clean, utc
from service.sql.upsert import upsert


class GroupLabelReader:
    """Reads labels of groups."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def of(self, group_id: int) -> GroupLabel | None:
        """The latest label of a group; None if no person labelled it, or the label was withdrawn."""
        row = self._connection.execute(select(group_labels).where(group_labels.c.group_id == group_id)).first()
        if row is None:
            return None
        before = (row.side_before, row.cause_before, row.abstained_before, row.labelled_before)
        judgements = [(int(failure), int(number)) for failure, number in unpack(row.judgements)]
        return GroupLabel(row.group_id, row.at, row.who, row.cause, before, judgements)


class GroupLabelRepository(GroupLabelReader):
    """Reads and writes labels of groups."""

    def put(self, label: GroupLabel) -> None:
        """Store a label, in place of an earlier one of the group."""
        side, cause, abstained, labelled_at = label.before
        values = {
            "at": utc(label.at),
            "who": clean(label.who[:200]),
            "cause": label.cause,
            "side_before": side,
            "cause_before": cause,
            "abstained_before": abstained,
            "labelled_before": labelled_at,
            "judgements": pack([list(pair) for pair in label.judgements]),
        }
        writing = upsert(self._connection, group_labels).values({"group_id": label.group_id, **values})
        self._connection.execute(writing.on_conflict_do_update(index_elements=["group_id"], set_=values))

    def remove(self, label: GroupLabel) -> bool:
        """Remove a label; False if another one is stored meanwhile, or none."""
        removed = self._connection.execute(
            delete(group_labels).where(group_labels.c.group_id == label.group_id, group_labels.c.at == utc(label.at))
        )
        return removed.rowcount == 1
