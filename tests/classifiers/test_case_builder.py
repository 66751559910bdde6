"""Training and serving build the same case from the same event."""

from datetime import UTC, datetime

from classifiers.case_builder import NOT_INLINE, build_case
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
