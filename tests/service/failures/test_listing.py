"""The failures list: each filter, each order, and pages that neither repeat nor skip."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.contracts.page import Page
from service.db.session import Store
from service.errors import InvalidInput
from service.failures.records import COUNTED_AS_FAILED, FailureFilter, FailureRow, FailureSort, NewFailure
from service.failures.repository import listing
from service.jobs.records import NewJob
from tests.service.sample_rows import NOON, job, put, verdict


def put_with(store: Store, pairs: list[tuple[NewJob, dict[str, Any]]]) -> None:
    with store.unit_of_work() as work:
        outcomes = work.jobs.add([given for given, _ in pairs])
        work.failures.add(
            [NewFailure(outcome, given, body) for outcome, (given, body) in zip(outcomes, pairs, strict=True)]
        )


def listed(store: Store, filters: FailureFilter | None = None, **options: Any) -> list[str]:
    with store.reading() as reading:
        return [row.job_id for row in reading.failures.page(filters, **options).items]


FILTERS: dict[str, Any] = {
    "side": "system",
    "cause": "SYS.9",
    "symptom": "A.1",
    "category": "9.9",
    "cluster": "vega",
    "queue": "short",
    "team": "nlp",
    "user": "bob",
    "node": "gpu99",
    "group": "v1:other",
    "status": "timeout",
    "abstained": True,
    "q": "nfs STALE",
}


@pytest.fixture
def one_odd(store: Store) -> Store:
    """One failure that every filter of FILTERS finds, among some that none of them does."""
    odd = job("odd", cluster="vega", queue="short", team="nlp", user="bob", nodes=("gpu1", "gpu99"), status="timeout")
    body = verdict(
        side="system",
        cause="SYS.9",
        symptom="A.1",
        category="9.9",
        abstained=True,
        fingerprint="v1:other",
        evidence=[{"text": "NFS: stale file handle", "role": "initiating"}],
    )
    plain = [(job(f"plain{n}", ended_at=NOON - timedelta(minutes=n)), verdict()) for n in range(3)]
    put_with(store, [(odd, body), *plain])
    return store


@pytest.mark.parametrize("sort", ["-ended_at", "ended_at", "-gpu_hours_lost"])
@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_alone(one_odd: Store, name: str, sort: FailureSort) -> None:
    assert listed(one_odd, FailureFilter(**{name: FILTERS[name]}), sort=sort) == ["odd"]
    miss: dict[str, Any] = {name: False if name == "abstained" else "no such value"}
    assert "odd" not in listed(one_odd, FailureFilter(**miss), sort=sort)


@pytest.mark.parametrize("sort", ["-ended_at", "ended_at", "-gpu_hours_lost"])
def test_failures_that_are_counted_as_failed(store: Store, sort: FailureSort) -> None:
    statuses = ("failed", "timeout", "preempted", "cancelled", "evicted")
    put_with(store, [(job(status, status=status, cluster=f"c{len(status)}"), verdict()) for status in statuses])
    counted = FailureFilter(status=COUNTED_AS_FAILED)
    assert sorted(listed(store, counted, sort=sort)) == ["evicted", "failed", "timeout"]
    assert sorted(listed(store, replace(counted, cluster="c7"), sort=sort)) == ["evicted", "timeout"]


def test_all_filters_together(one_odd: Store) -> None:
    around = FailureFilter(**FILTERS, since=NOON, until=NOON + timedelta(seconds=1))
    assert listed(one_odd, around) == ["odd"]
    assert listed(one_odd, replace(around, user="ana")) == []


def test_since_is_inclusive_and_until_exclusive(one_odd: Store) -> None:
    assert listed(one_odd, FailureFilter(since=NOON)) == ["plain0", "odd"]
    assert listed(one_odd, FailureFilter(until=NOON - timedelta(minutes=1))) == ["plain2"]
    assert listed(one_odd, FailureFilter(node="gpu2", until=NOON)) == ["plain1", "plain2"]


@pytest.mark.parametrize("q", ["%", "_", "\\", "'; DROP TABLE jobs; --", "\0"])
def test_search_operators_are_taken_as_words(one_odd: Store, q: str) -> None:
    assert listed(one_odd, FailureFilter(q=q)) == []


def test_a_query_without_words_does_not_filter(one_odd: Store) -> None:
    assert len(listed(one_odd, FailureFilter(q="  "))) == 4


@pytest.mark.parametrize("sort", ["-ended_at", "ended_at", "-gpu_hours_lost"])
@pytest.mark.parametrize("filters", [FailureFilter(), FailureFilter(node="gpu2"), FailureFilter(q="json")])
def test_pages_neither_repeat_nor_skip(
    store: Store, monkeypatch: pytest.MonkeyPatch, sort: FailureSort, filters: FailureFilter
) -> None:
    monkeypatch.setattr(listing, "Q_WINDOW", 7)
    dice = random.Random(5)
    put(
        store,
        [
            job(
                f"e{n}",
                ended_at=NOON + timedelta(minutes=dice.randint(0, 9), microseconds=dice.randint(0, 2)),
                gpu_hours_lost=dice.choice([0.0, 0.1, 1 / 3, 2.5]),
            )
            for n in range(60)
        ],
    )
    rows: list[FailureRow] = []
    cursor: str | None = None
    with store.reading() as reading:
        for _ in range(60):
            page: Page[FailureRow] = reading.failures.page(filters, limit=5, cursor=cursor, sort=sort)
            assert len(page.items) <= 5
            rows.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
    assert cursor is None
    assert len({row.id for row in rows}) == len(rows) == 60
    keys = [(row.gpu_hours_lost if sort == "-gpu_hours_lost" else row.ended_at.timestamp(), row.id) for row in rows]
    assert keys == sorted(keys, reverse=sort.startswith("-"))


@pytest.mark.parametrize(("few", "wanted"), [(0, 3), (2_000, 1)])
def test_a_word_beyond_the_window_is_found_on_later_pages(
    store: Store, monkeypatch: pytest.MonkeyPatch, few: int, wanted: int
) -> None:
    monkeypatch.setattr(listing, "Q_WINDOW", 4)
    monkeypatch.setattr(listing, "Q_FEW", few)
    rare = [{"text": "needle in a log", "role": "initiating"}]
    pairs = [(job(f"e{n}", ended_at=NOON - timedelta(minutes=n)), verdict()) for n in range(10)]
    pairs.append((job("rare", ended_at=NOON - timedelta(minutes=11)), verdict(evidence=rare)))
    put_with(store, pairs)
    cursor, pages, found = None, 0, []
    with store.reading() as reading:
        while pages == 0 or cursor is not None:
            page = reading.failures.page(FailureFilter(q="needle"), cursor=cursor)
            cursor, pages = page.next_cursor, pages + 1
            found += [row.job_id for row in page.items]
    assert (found, pages) == (["rare"], wanted)


@pytest.mark.parametrize("few", [0, 2_000])
@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("INDEX.json", True),  # in pieces, whatever the case
        ("train term", True),  # of two lines; the beginning of a word is enough
        ("ndex", False),
        ("index nothing", False),
        ("flash_attn", False),
        ("É\ud800 index", False),
    ],
)
def test_all_words_must_occur_in_the_evidence(
    store: Store, monkeypatch: pytest.MonkeyPatch, q: str, *, found: bool, few: int
) -> None:
    monkeypatch.setattr(listing, "Q_FEW", few)
    put_with(store, [(job("e1"), verdict())])
    assert bool(listed(store, FailureFilter(q=q))) is found


def test_a_new_version_replaces_the_searched_words(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    with store.unit_of_work() as work:
        evidence = [{"text": "NVRM: Xid 79", "role": "initiating"}]
        work.failures.revise(outcome.failure_id or 0, verdict(evidence=evidence))
    assert listed(store, FailureFilter(q="xid 79"))
    assert not listed(store, FailureFilter(q="index.json"))


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_limit_out_of_range_is_refused(store: Store, limit: int) -> None:
    with store.reading() as reading, pytest.raises(InvalidInput) as caught:
        reading.failures.page(limit=limit)
    assert caught.value.errors[0].field == "limit"


def test_an_unknown_order_is_refused(store: Store) -> None:
    with store.reading() as reading, pytest.raises(InvalidInput) as caught:
        reading.failures.page(sort="colour")  # type: ignore[arg-type]  # what a URL may say
    assert caught.value.errors[0].field == "sort"


def test_a_cursor_of_another_order_is_refused(store: Store) -> None:
    put(store, [job("a"), job("b")])
    with store.reading() as reading:
        cursor = reading.failures.page(limit=1).next_cursor
        with pytest.raises(InvalidInput) as caught:
            reading.failures.page(cursor=cursor, sort="ended_at")
    assert caught.value.errors[0].field == "cursor"
