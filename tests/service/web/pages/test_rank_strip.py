"""Ranks over time: which rank failed first, and when the others followed."""

from dataclasses import replace
from datetime import timedelta

from classifiers.contracts import LogStream
from service.failures.records import FailureDetail
from service.web import views
from service.web.pages.failure.page import sequence
from service.web.pages.failure.rank_strip import RankStrip, rank_strip
from tests.service.web.world import World, event, lines, log

FIRST = {"role": "initiating", "stream": "stderr", "node": "gpu1", "line": 1}
LATER = {"role": "cascade", "stream": "stderr", "node": "gpu2", "line": 1}


def stored(world: World) -> FailureDetail:
    """A failure with a log."""
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("7", logs=[log("KeyError: 'a'")])))
        return views.failure(world.services, client.get("/api/v1/failures").json()["items"][0]["id"])


def failure(world: World, evidence: list[dict[str, object]], streams: tuple[LogStream, ...] = ()) -> FailureDetail:
    """A stored failure with other evidence and logs."""
    detail = stored(world)
    logs = tuple(replace(kept, load=lambda: streams) for kept in detail.logs)
    return replace(detail, verdict={**(detail.verdict or {}), "evidence": evidence}, logs=logs)


def test_the_rank_that_failed_first_comes_first_and_the_others_by_time(world: World) -> None:
    ended = stored(world).row.ended_at

    def line(rank: int, seconds: float, **more: object) -> dict[str, object]:
        return {"rank": rank, "text": f"{ended - timedelta(seconds=100 - seconds):%Y-%m-%dT%H:%M:%S} error", **more}

    streams = tuple(
        LogStream(f"{ended - timedelta(seconds=60):%Y-%m-%dT%H:%M:%S} step 4\n", rank=rank) for rank in range(64)
    )
    found = rank_strip(failure(world, [line(3, 7, **LATER), line(27, 0, **FIRST)], streams))
    assert found is not None
    by_rank = {mark.rank: mark for mark in found.marks}
    assert (by_rank[27].role, by_rank[27].after_s) == ("initiating", 0)
    assert (by_rank[3].role, by_rank[3].after_s) == ("cascade", 7)
    assert (by_rank[63].role, by_rank[63].after_s) == (None, 40)
    assert [mark.rank for mark in sorted(found.marks, key=lambda mark: mark.rank_order)][:2] == [27, 3]
    assert by_rank[27].x < by_rank[3].x < by_rank[63].x
    assert len(found.marks) == 64
    assert [mark.rank for mark in found.first] == [27]
    named = [rank for rank, _ in found.labels]
    assert 27 in named, "the first rank is written beside the chart"
    assert named == sorted(named)
    assert found.span_s == 40


def test_ranks_without_times_are_ordered_by_role(world: World) -> None:
    found = rank_strip(failure(world, [{"rank": 1, "text": "b", **LATER}, {"rank": 0, "text": "a", **FIRST}]))
    assert found is not None
    assert found.span_s == 0
    assert [mark.x for mark in found.marks] == sorted(mark.x for mark in found.marks)
    assert found.marks[0].x < found.marks[1].x


def test_a_rank_that_failed_first_is_drawn_though_its_line_has_no_time(world: World) -> None:
    """A traceback has no time, the last steps of the other ranks have: a chart of times would leave the first out."""
    ended = stored(world).row.ended_at
    streams = tuple(LogStream(f"{ended:%Y-%m-%dT%H:%M:0{rank}} step\n", rank=rank) for rank in range(6))
    evidence: list[dict[str, object]] = [{"rank": 4, "text": "a", **FIRST}, {"rank": 1, "text": "b", **LATER}]
    detail = failure(world, evidence, streams)
    found = rank_strip(detail)
    assert found is not None
    assert (found.span_s, found.untimed) == (0, 0)
    assert [mark.rank for mark in sorted(found.marks, key=lambda mark: mark.x)][:2] == [4, 1]
    assert [mark.stream for mark in found.marks] == list(range(6)), "each rank leads to its log"
    assert found.affected == 1
    chain = [{"kind": "consequence", "text": "b", "ranks": 5}, {"kind": "end", "text": "failed", "ranks": 9}]
    found = rank_strip(replace(detail, verdict={**(detail.verdict or {}), "chain": chain}))
    assert found is not None
    assert found.affected == 5, "as the sequence of events says"


def test_ranks_without_a_time_are_counted(world: World) -> None:
    ended = stored(world).row.ended_at
    streams = tuple(LogStream(f"{ended:%Y-%m-%dT%H:%M:0{rank}} step\n", rank=rank) for rank in range(3))
    evidence: list[dict[str, object]] = [
        {"rank": 0, "text": f"{ended - timedelta(seconds=9):%Y-%m-%dT%H:%M:%S} error", **FIRST},
        {"rank": 1, "text": "b", **LATER},
    ]
    found = rank_strip(failure(world, evidence, streams))
    assert found is not None
    assert found.span_s > 0
    assert found.untimed == 1


def test_one_rank_or_evidence_without_ranks_has_no_strip(world: World) -> None:
    assert rank_strip(failure(world, [{"rank": 0, "text": "a", **FIRST}])) is None
    assert rank_strip(failure(world, [{"rank": None, "text": "a", **FIRST}])) is None
    aside = {"rank": 1, "text": "b", "note": "written long before the end", **LATER}
    assert rank_strip(failure(world, [{"rank": 0, "text": "a", **FIRST}, aside])) is None


def test_a_step_is_said_to_be_later_only_where_the_ranks_have_times() -> None:
    """A watchdog's line without a time has that of the last step before it, which may be half an hour older."""
    ranks = {"kind": "consequence", "text": "x", "title": "A peer is gone", "ranks": 3, "lines": 3, "after_s": 3.0}
    verdict = {"chain": [{"kind": "beginning", "text": "timed out", "rank": 13}, ranks]}
    timed = RankStrip(marks=(), labels=(), span_s=3.0, height=1.0, left_out=0)
    for strip in (None, timed):
        assert sequence(verdict, strip)[1].text == "A peer is gone (3 other ranks, 3\u00a0s later)"
    assert sequence(verdict, replace(timed, span_s=0.0))[1].text == "A peer is gone (3 other ranks)"
