"""Stored labels of a group, on both databases."""

from datetime import UTC, datetime, timedelta

from service.db.session import Store
from service.feedback.records import GroupLabel

AT = datetime(2026, 11, 20, 12, 0, 0, 123_456, tzinfo=UTC)


def label(number: int, before: str, at: datetime | None = None) -> GroupLabel:
    judgements = [(7, number), (8, number + 1)]
    return GroupLabel(3, AT + timedelta(hours=number), f"p{number}", "SYS.5", ("user", before, False, at), judgements)


def test_a_removed_label_leaves_what_it_had_replaced_to_the_next(store: Store) -> None:
    first, second, third = label(10, "USER.1"), label(20, "USER.2", AT), label(30, "USER.3", AT)
    for one in (first, second, third):
        with store.unit_of_work() as work:
            work.group_labels.put(one)
    with store.reading() as reading:
        assert reading.group_labels.of(3) == (third, second, first)
        assert reading.group_labels.of(4) == ()
    with store.unit_of_work() as work:
        assert work.group_labels.remove(3, 20) == (second, False)
        assert work.group_labels.remove(3, 20) is None
    with store.unit_of_work() as work:
        found = work.group_labels.of(3)
        assert [(one.number, one.before) for one in found] == [(30, second.before), (10, first.before)]
        assert work.group_labels.remove(3, 30) == (found[0], True)
        assert work.group_labels.remove(3, 10) == (first, True)
        assert work.group_labels.of(3) == ()
