"""Training and serving build the same case from the same event."""

from datetime import UTC, datetime
from typing import Any

import pytest

from classifiers.case_builder import NODE_EVENTS_MOST, NOT_INLINE, build_case
from classifiers.contracts import LogStream
from service.contracts.event import from_object

EVENT = {
    "cluster": "c",
    "job_id": "1",
    "status": "node_fail",
    "ended_at": "2026-11-20T11:00:00+01:00",
    "exit_code": 137,
    "gpus": 8,
    "nodes": ["n1", "n2"],
    "labels": {"faultline/resubmit": "auto"},
    "logs": [{"rank": 3, "node": "n1", "stream": "stdout", "tail": "Xid 79"}, {"rank": 4, "uri": "file:///x"}],
    "node_events": [{"at": "2026-11-20T09:59:00Z", "node": "n1", "source": "kernel", "text": "NVRM: Xid 79"}],
}


def test_an_object_and_a_parsed_event_give_the_same_case() -> None:
    case = build_case(EVENT)
    assert build_case(from_object(EVENT)) == case
    assert case.job.ended_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert (case.job.status, case.job.exit_code, case.job.gpus) == ("node_fail", 137, 8)
    assert case.node_events[0].text == "NVRM: Xid 79"


def test_a_log_without_its_text_counts_as_missing() -> None:
    first, second = build_case(EVENT).streams
    assert (first.text, first.rank, first.missing) == ("Xid 79", 3, None)
    assert (second.text, second.rank, second.missing) == ("", 4, NOT_INLINE)


def test_streams_that_were_read_replace_the_inline_tails() -> None:
    streams = [LogStream("read elsewhere", rank=0)]
    assert build_case(EVENT, streams).streams == tuple(streams)


def test_values_of_the_wrong_type_count_as_not_known() -> None:
    case = build_case(
        {"status": "failed", "exit_code": "1", "gpus": True, "user": 7, "started_at": "soon", "labels": []}
    )
    assert (case.job.exit_code, case.job.gpus, case.job.user, case.job.started_at) == (None, None, None, None)
    assert case.job.labels == {}


@pytest.mark.parametrize("value", [True, 7, 1.5, "n1", {"n1": 1}])
def test_a_value_that_is_no_list_counts_as_an_empty_one(value: object) -> None:
    case = build_case({"status": "failed", "nodes": value, "node_events": value, "logs": value})
    assert (case.job.nodes, case.node_events, case.streams) == ((), (), ())
    log = {"tail": value, "rank": value, "node": value, "stream": value, "kind": value}
    streams = build_case({"logs": [log, value], "node_events": [value]}).streams
    assert [type(one.text) for one in streams] == [str, str]


# By their place in the list the event that counts was left out wherever the others stood behind it.
@pytest.mark.parametrize(
    "others", ["2026-11-20T03:00:00Z", "2026-11-20T18:00:00Z", None], ids=["earlier", "later", "without"]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_of_too_many_node_events_those_nearest_to_the_end_of_the_job_are_read(
    others: str | None, is_first: bool
) -> None:
    counts: Any = EVENT["node_events"]
    crowd = [{"at": others, "node": "n1", "source": "kernel", "text": str(one)} for one in range(NODE_EVENTS_MOST + 5)]
    case = build_case({**EVENT, "node_events": [*counts, *crowd] if is_first else [*crowd, *counts]})
    texts = [one.text for one in case.node_events]
    assert "NVRM: Xid 79" in texts
    assert (len(texts), case.node_events_cut) == (NODE_EVENTS_MOST, 6)
    assert texts == sorted(texts, key=lambda text: ("NVRM" in text) != is_first)  # in their order


def test_without_the_end_of_a_job_the_latest_of_its_node_events_are_read() -> None:
    crowd = [
        {"at": f"2026-11-20T{at // 60:02}:{at % 60:02}:00Z", "text": str(at)} for at in range(NODE_EVENTS_MOST + 5)
    ]
    case = build_case({"node_events": crowd[::-1]})
    assert {one.text for one in case.node_events} == {str(at) for at in range(5, NODE_EVENTS_MOST + 5)}


def test_of_node_events_without_times_the_last_ones_are_read() -> None:
    case = build_case({"node_events": [{"text": str(one)} for one in range(NODE_EVENTS_MOST + 5)]})
    assert [one.text for one in case.node_events] == [str(one) for one in range(5, NODE_EVENTS_MOST + 5)]
