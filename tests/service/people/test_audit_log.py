"""Changes of the audit log are detected."""

import pytest
from sqlalchemy import text

from service.db.session import Store
from service.errors import Conflict
from service.people.repository.audit_log import AuditFilter
from tests.service.databases import engine_of


def fill(store: Store) -> None:
    for number in range(5):
        with store.unit_of_work() as work:
            work.audit_log.append(
                "ana", "verdict.corrected", f"failure/{number}", before={"side": "user"}, after={"n": number}
            )


def test_entries_come_newest_first_with_what_was_before_and_after(store: Store) -> None:
    fill(store)
    with store.reading() as reading:
        page = reading.audit_log.page(limit=3)
        rest = reading.audit_log.page(limit=3, cursor=page.next_cursor)
        one = reading.audit_log.page(limit=3, wanted=AuditFilter("failure/2")).items
    assert [entry.subject for entry in (*page.items, *rest.items)] == [f"failure/{n}" for n in (4, 3, 2, 1, 0)]
    assert (page.items[0].who, page.items[0].before, page.items[0].after) == ("ana", {"side": "user"}, {"n": 4})
    assert [entry.after for entry in one] == [{"n": 2}]


def test_an_unchanged_log_is_valid(store: Store) -> None:
    fill(store)
    with store.reading() as reading:
        assert reading.audit_log.verify() == (5, None)


def test_changed_removed_and_inserted_rows_are_detected(store: Store) -> None:
    fill(store)
    for statement in (
        "UPDATE audit_log SET who = 'bob' WHERE id = 3",
        "DELETE FROM audit_log WHERE id = 3",
    ):
        with engine_of(store).begin() as connection:
            connection.execute(text(statement))
        with store.reading() as reading:
            count, broken = reading.audit_log.verify()
        assert count == 2
        assert broken is not None


def test_a_change_that_is_rolled_back_leaves_no_entry(store: Store) -> None:
    fill(store)

    def change_twice() -> None:
        with store.unit_of_work() as work:
            work.audit_log.append("ana", "token.made", "token/a")
            work.tokens.create("a", ["read"])
            work.tokens.create("a", ["read"])

    with pytest.raises(Conflict):
        change_twice()
    with store.reading() as reading:
        assert reading.audit_log.verify() == (5, None)
