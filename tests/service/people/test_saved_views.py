import time
from collections.abc import Callable
from threading import Thread

from service.db.session import Store
from service.people.records import SavedView


def test_views_are_kept_by_name_for_one_person(store: Store) -> None:
    with store.unit_of_work() as work:
        work.saved_views.save("ana", SavedView("b", "/failures", "side=user"))
        work.saved_views.save("ana", SavedView("a", "/failures", "q=%C3%A9"))
        work.saved_views.save("ana", SavedView("b", "/failures", "side=system"))
        work.saved_views.save("bo", SavedView("b", "/failures", ""))
    with store.reading() as reading:
        assert [(view.name, view.query) for view in reading.saved_views.of("ana", "/failures")] == [
            ("a", "q=%C3%A9"),
            ("b", "side=system"),
        ]
        assert reading.saved_views.of("ana", "/groups") == ()


def test_filters_that_are_saved_twice_at_the_same_time_are_stored_once(open_store: Callable[[], Store]) -> None:
    first, second = open_store(), open_store()
    errors: list[Exception] = []

    def save() -> None:
        try:
            with second.unit_of_work() as work:
                work.saved_views.save("ana", SavedView("mine", "/failures", "side=user"))
        except Exception as error:  # noqa: BLE001 -- of the thread, for the test
            errors.append(error)

    thread = Thread(target=save)
    with first.unit_of_work() as work:
        work.saved_views.save("ana", SavedView("mine", "/failures", "side=system"))
        thread.start()
        time.sleep(0.3)  # the other one waits for this transaction
    thread.join(60)
    assert errors == []
    with first.reading() as reading:
        assert reading.saved_views.of("ana", "/failures") == (SavedView("mine", "/failures", "side=user"),)
