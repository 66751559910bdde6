"""Lists over several indexes: failures of several users and teams."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.errors import InvalidInput
from service.failures.records import FailureFilter, FailureRow, FailureSort, NewFailure, Visibility
from service.failures.repository import facets, listing
from tests.service.sample_rows import NOON, job, put, verdict

ANA_OR_VISION = Visibility(users=((None, "ana"), ("vega", "bob"), ("vega", "bob")), teams=("vision",))
NOBODY = Visibility((), ())


def seen(row: FailureRow) -> bool:
    return row.user == "ana" or (row.user == "bob" and row.cluster == "vega") or row.team == "vision"


@pytest.fixture
def many(store: Store) -> Store:
    """Sixty failures of three users, two teams, two clusters and two causes, many of which end at the same time."""
    dice = random.Random(7)
    made = [
        job(
            f"e{n}",
            user=dice.choice(["ana", "bob", "cid"]),
            team=dice.choice(["vision", "nlp"]),
            cluster=dice.choice(["orion", "vega"]),
            ended_at=NOON + timedelta(minutes=dice.randint(0, 9)),
            gpu_hours_lost=dice.choice([0.0, 0.5, 3.0]),
        )
        for n in range(60)
    ]
    with store.unit_of_work() as work:
        outcomes = work.jobs.add(made)
        verdicts = [verdict(side="system", cause=dice.choice(["SYS.1", "SYS.9"])) for _ in made]
        work.failures.add([NewFailure(*one) for one in zip(outcomes, made, verdicts, strict=True)])
    return store


def walked(store: Store, filters: FailureFilter, sort: FailureSort, limit: int) -> list[FailureRow]:
    """All pages one after the other."""
    rows: list[FailureRow] = []
    cursor: str | None = None
    with store.reading() as reading:
        for _ in range(200):
            page = reading.failures.page(filters, limit=limit, cursor=cursor, sort=sort)
            assert len(page.items) <= limit
            rows += page.items
            cursor = page.next_cursor
            if cursor is None:
                return rows
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("sort", ["-ended_at", "ended_at", "-gpu_hours_lost"])
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({}, lambda _: True),
        ({"cause": "SYS.9"}, lambda row: row.cause == "SYS.9"),
        ({"user": "bob"}, lambda row: row.user == "bob"),
        ({"cluster": "orion"}, lambda row: row.cluster == "orion"),
        ({"team": "nlp", "node": "gpu2"}, lambda row: row.team == "nlp"),
        ({"q": "json"}, lambda _: True),
    ],
)
@pytest.mark.parametrize("few", [0, 2_000])
def test_exactly_the_visible_failures_are_listed_once_and_in_order(
    many: Store,
    monkeypatch: pytest.MonkeyPatch,
    sort: FailureSort,
    asked: dict[str, Any],
    fits: Callable[[FailureRow], bool],
    few: int,
) -> None:
    everything = [row for row in walked(many, FailureFilter(), sort, 500) if seen(row) and fits(row)]
    monkeypatch.setattr(listing, "Q_WINDOW", 7)
    monkeypatch.setattr(listing, "Q_FEW", few)
    shown = walked(many, FailureFilter(**asked, visible=ANA_OR_VISION), sort, 5)
    assert everything
    assert [row.id for row in shown] == [row.id for row in everything]


def test_an_empty_visibility_shows_nothing(many: Store) -> None:
    assert walked(many, FailureFilter(visible=NOBODY), "-ended_at", 5) == []
    with many.reading() as reading:
        counts = reading.failures.facets(FailureFilter(visible=NOBODY))
        assert (counts.of, counts.whole) == (0, True)
        with pytest.raises(InvalidInput, match="limit"):
            reading.failures.page(FailureFilter(visible=NOBODY), limit=0)
        with pytest.raises(InvalidInput, match="cursor"):
            reading.failures.page(FailureFilter(visible=NOBODY), cursor="no cursor")


def test_facets_count_visible_failures_once(many: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in walked(many, FailureFilter(), "-ended_at", 500) if seen(row)]
    with many.reading() as reading:
        counts = reading.failures.facets(FailureFilter(visible=ANA_OR_VISION))
        monkeypatch.setitem(facets.count.__kwdefaults__ or {}, "over", 5)
        newest = reading.failures.facets(FailureFilter(visible=ANA_OR_VISION))
    assert (counts.of, counts.whole) == (len(rows), True)
    by_user = {one.value: one.failures for one in counts.counts["user"]}
    assert by_user == {user: sum(row.user == user for row in rows) for user in by_user}
    assert set(by_user) == {"ana", "bob", "cid"}
    assert (newest.of, newest.whole, newest.since) == (5, False, min(row.ended_at for row in rows[:5]))


def test_facets_count_only_suspected_nodes(store: Store) -> None:
    put(store, [job("e1")], side="user")
    put(store, [job("e2")], side="hardware", abstained=True)
    put(store, [job("e3"), job("e4")], side="hardware")
    with store.reading() as reading:
        counts = reading.failures.facets(FailureFilter()).counts
    assert [(one.value, one.failures) for one in counts["node"]] == [("gpu1", 2)]
    for sort in ("-ended_at", "ended_at", "-gpu_hours_lost"):
        rows = walked(store, FailureFilter(suspect="gpu1"), sort, 50)
        assert sorted(row.side for row in rows) == ["hardware", "hardware"]
        assert walked(store, FailureFilter(suspect="gpu1", side="user"), sort, 50) == []
    assert walked(store, FailureFilter(suspect="gpu2"), "-ended_at", 50) == []
