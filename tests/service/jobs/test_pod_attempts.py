from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.jobs.pod_attempts import Assignment, Member, assign
from tests.service.sample_rows import NOON


def member(number: int, minute: int, *, own: bool = False, diagnosed: bool = True) -> Member:
    began = NOON + timedelta(minutes=minute)
    return Member(number, own, began, began + timedelta(minutes=4), diagnosed, new=True)


def test_the_first_failed_pod_opens_and_counts_until_its_controller_ends() -> None:
    pods = [member(1, 0, diagnosed=False), member(2, 1), member(3, 2)]
    assignments = assign(pods)
    assert assignments.places == {1: Assignment(False, None), 2: Assignment(True, 2, True), 3: Assignment(False, 2)}
    assert assignments.stands_for == {2: 2}
    assignments = assign([*pods, member(4, 3, own=True)])
    assert assignments.places[4] == Assignment(True, 2)
    assert not assignments.places[2].counted


def created(number: int, minute: int, **changes: object) -> Member:
    """A pod that was created when it began."""
    one = member(number, minute)
    return replace(one, created=one.began, **changes)  # type: ignore[arg-type]


def test_pods_of_a_later_controller_of_the_same_name_are_a_failure_of_their_own() -> None:
    """No end of the controller may ever arrive, such as that of a JobSet of a cluster that sends Pods and Jobs only."""
    assignments = assign([created(1, 0), created(2, 10), created(3, 24 * 60), created(4, 24 * 60 + 5)])
    assert assignments.places == {
        1: Assignment(True, 1, True),
        2: Assignment(False, 1),
        3: Assignment(True, 3, True),
        4: Assignment(False, 3),
    }
    assert assignments.stands_for == {1: 1, 3: 3}


def test_the_end_of_a_controller_takes_no_pods_that_ended_before_it_was_created() -> None:
    own = replace(member(3, 24 * 60, own=True), created=NOON + timedelta(hours=23))
    assignments = assign([created(1, 0), created(2, 24 * 60), own])
    assert assignments.places == {1: Assignment(True, 1, True), 2: Assignment(False, 2, True), 3: Assignment(True, 2)}


def test_two_failures_that_a_late_pod_shows_to_be_one_count_once() -> None:
    stored = [
        created(1, 0, new=False, failure_id=1, counted=True),
        created(2, 120, new=False, failure_id=2, counted=True),
    ]
    assignments = assign([*stored, created(3, 60)])
    assert assignments.places[3] == Assignment(False, 1)
    assert assignments.stands_for == {1: 1, 2: 1}
    assert not assignments.places[2].counted


members = st.lists(st.tuples(st.integers(0, 500), st.booleans(), st.booleans()), min_size=1, max_size=12).map(
    lambda rows: [member(n + 1, at, own=own, diagnosed=diagnosed) for n, (at, own, diagnosed) in enumerate(rows)]
)


@given(members, st.data())
def test_every_run_counts_once_and_every_diagnosed_row_has_one_failure(rows: list[Member], data: st.DataObject) -> None:
    """In any order and batches: one failure for each row, opened by itself or an earlier one."""
    arriving = data.draw(st.permutations(rows))
    stored: list[Member] = []
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        batch, arriving = arriving[:size], arriving[size:]
        highest = max((row.id for row in stored), default=0)
        batch = [replace(row, id=highest + n + 1) for n, row in enumerate(batch)]
        assignments = assign([*stored, *batch])
        opened = {n for n, place in assignments.places.items() if place.opens}
        assert opened <= {row.id for row in batch}
        stored = [
            replace(
                row,
                new=False,
                counted=assignments.places[row.id].counted,
                failure_id=assignments.places[row.id].failure_id,
            )
            for row in [*stored, *batch]
        ]
        failures = {row.failure_id for row in stored if row.failure_id is not None}
        by_id = {row.id: row for row in stored}
        assert all((row.failure_id is not None) == row.diagnosed for row in stored)
        assert all(by_id[failure].failure_id == failure for failure in failures)
        ends = [row for row in stored if row.own]
        assert all(row.counted for row in ends)
        assert sum(row.counted for row in stored) - len(ends) in {0, 1}
        assert set(assignments.stands_for) <= failures


def test_a_controller_that_ended_at_the_last_time_of_the_calendar_keeps_its_pods() -> None:
    latest = datetime.max.replace(tzinfo=UTC)
    ends = [replace(member(1, 0, own=True), ended=latest), member(2, 1), replace(member(3, 2), began=latest)]
    assert assign(ends).places[2] == Assignment(False, 1)
