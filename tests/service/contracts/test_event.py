from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import STATUSES
from service.contracts import event as contract
from service.contracts.event import JobCompletion, Status, from_object
from service.errors import FieldError, UnreadableRecord

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def native(**change: Any) -> dict[str, Any]:
    return {"cluster": "c", "job_id": "ns/Job/a b", "status": "failed", "ended_at": "2026-11-20T10:00:00Z", **change}


def refused(**change: Any) -> UnreadableRecord:
    with pytest.raises(UnreadableRecord) as caught:
        from_object(native(**change))
    return caught.value


@pytest.mark.parametrize("field", ["cluster", "job_id", "status", "ended_at"])
def test_each_required_field_is_asked_for_by_name(field: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        from_object({key: value for key, value in native().items() if key != field})
    assert [(place.field, place.expected) for place in caught.value.errors] == [
        (field, "a value, because it is required")
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "FAILED"}, "status"),
        ({"job_id": ""}, "job_id"),
        ({"job_id": 12}, "job_id"),
        ({"job_id": "x" * 201}, "job_id"),
        ({"job_id": "a\nb"}, "job_id"),
        ({"event_id": "e" * 201}, "event_id"),
        ({"ended_at": "2026-11-20T10:00:00"}, "ended_at"),
        ({"ended_at": 1795146117}, "ended_at"),
        ({"ended_at": "1795146117"}, "ended_at"),
        ({"schema": "job-completion/9"}, "schema"),
    ],
)
def test_a_wrong_required_field_is_named_with_what_was_expected(change: dict[str, Any], field: str) -> None:
    [place] = refused(**change).errors
    assert place.field == field
    assert place.expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"exit_code": -1}, "exit_code"),
        ({"exit_code": 256}, "exit_code"),
        ({"exit_code": "1"}, "exit_code"),
        ({"exit_code": 1.0}, "exit_code"),
        ({"exit_code": True}, "exit_code"),
        ({"signal": -9}, "signal"),
        ({"attempt": -1}, "attempt"),
        ({"gpus": 1e29}, "gpus"),
        ({"started_at": "0001-01-01T00:00:00+14:00"}, "started_at"),
        ({"nodes": "a1"}, "nodes"),
        ({"nodes": ["a1", 2, "a3"]}, "nodes.1"),
        ({"labels": {"a": 1}}, "labels.a"),
        ({"logs": [{"rank": -1}]}, "logs.0.rank"),
        ({"logs": [{"rank": "0"}]}, "logs.0.rank"),
        ({"requested": {"cpus": -1}}, "requested.cpus"),
        ({"requested": 7}, "requested"),
    ],
)
def test_a_wrong_optional_field_is_dropped_and_named(change: dict[str, Any], field: str) -> None:
    event = from_object(native(user="ana", **change))
    assert (event.user, event.status) == ("ana", "failed")
    [problem] = event.intake_problems
    assert problem.startswith(f"{field}: dropped, expected ")
    assert from_object(event.model_dump(mode="json", by_alias=True)).intake_problems == ()  # nothing wrong is left


def test_what_is_right_around_a_wrong_field_is_kept() -> None:
    logs = [{"rank": 0, "tail": "a"}, {"rank": "1", "tail": "b"}, 7, {"rank": 3, "tail": 5}, {"rank": 4, "tail": "e"}]
    event = from_object(native(logs=logs, nodes=["a", None, "b", 3], labels={"x": "1", "y": None}, gpus=8))
    assert [(one.rank, one.tail) for one in event.logs] == [(0, "a"), (None, "b"), (3, None), (4, "e")]
    assert (event.nodes, event.labels, event.gpus) == (("a", "b"), {"x": "1"}, 8)
    assert len(event.intake_problems) == 6


def test_a_wrong_required_field_among_wrong_optional_ones_refuses_the_event() -> None:
    assert {place.field for place in refused(exit_code=-1, status=3).errors} == {"exit_code", "status"}


def test_many_wrong_fields_are_summarised() -> None:
    event = from_object(native(nodes=[7] * 1_000))
    assert event.nodes == ()
    assert len(event.intake_problems) == 21
    assert event.intake_problems[-1] == "and 980 more"


def test_a_producer_can_not_write_problems() -> None:
    assert from_object(native(intake_problems=["forged"])).intake_problems == ()
    assert from_object(native(intake_problems=7)).intake_problems == ()


def test_a_node_event_without_a_time_zone_is_taken_as_utc_and_the_repair_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = [{"at": "2026-11-20T09:59:00", "text": "Xid 79"}, {"at": "2026-11-20T10:59:00+01:00", "text": "Xid 94"}]
    event = from_object(native(node_events=lines))
    instant = datetime(2026, 11, 20, 9, 59, tzinfo=UTC)
    assert [(line.at, line.text) for line in event.node_events] == [(instant, "Xid 79"), (instant, "Xid 94")]
    assert event.intake_problems == ("node_events.0.at: no time zone, taken as UTC",)
    assert event.intake_problems[0] in caplog.text
    assert event.model_dump(mode="json")["intake_problems"] == list(event.intake_problems)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({}, "text: expected a value, because it is required"),
        ({"text": 7}, "text: expected a valid string"),
        ({"text": "Xid 79", "at": "yesterday"}, "at: expected "),
        ({"text": "Xid 79", "at": 1795146117}, "at: expected a time as RFC 3339 with zone"),
        ("Xid 79", "(whole object): expected "),
        (None, "(whole object): expected "),
    ],
)
def test_a_node_event_that_cannot_be_read_is_dropped_and_the_event_is_taken(line: Any, problem: str) -> None:
    event = from_object(native(node_events=[line, {"text": "Xid 94"}]))
    assert [kept.text for kept in event.node_events] == ["Xid 94"]
    [found] = event.intake_problems
    assert found.startswith(f"node_events.0: dropped, {problem}")


def test_many_bad_node_events_are_summarised() -> None:
    event = from_object(native(node_events=[{}] * 1_000))
    assert event.node_events == ()
    assert len(event.intake_problems) == 21
    assert event.intake_problems[-1] == "and 980 more"


def test_every_wrong_field_is_named_at_once() -> None:
    assert {place.field for place in refused(status=1, job_id=1).errors} == {"status", "job_id"}


def test_a_message_never_shows_a_secret_in_a_long_text() -> None:
    error = refused(job_id="password=" + "hunter2" * 40)
    assert "hunter2" not in f"{error} {error.errors}"
    assert "hunter2" not in f"{from_object(native(exit_code='password=' + 'hunter2' * 20)).intake_problems}"


def test_a_labelled_case_and_an_event_end_in_the_same_words() -> None:
    assert set(STATUSES) == set(Status)


@pytest.mark.parametrize("field", ["nodes", "logs", "node_events", "topology", "labels"])
def test_null_is_empty(field: str) -> None:
    assert not getattr(from_object(native(**{field: None})), field)


def test_unknown_fields_are_kept() -> None:
    found = from_object(native(site={"a": 1}))
    assert found.model_dump(by_alias=True)["site"] == {"a": 1}


def test_a_leap_second_is_the_second_before_it() -> None:
    event = from_object(native(ended_at="2026-12-31T23:59:60.5Z", started_at="2027-01-01T00:59:60+01:00"))
    assert event.ended_at == datetime(2026, 12, 31, 23, 59, 59, 500_000, UTC)
    assert (event.started_at, event.intake_problems) == (datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), ())


def test_times_are_utc_whatever_their_zone() -> None:
    found = from_object(native(ended_at="2026-11-20T11:00:00+01:00"))
    assert found.ended_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert found.ended_at.tzinfo is UTC
    assert found.key() == from_object(native()).key()


def test_the_key_is_the_given_id_or_says_which_attempt() -> None:
    assert from_object(native(event_id="mine")).key() == "mine"
    keys = {
        from_object(native(**change)).key()
        for change in (
            {},
            {"attempt": 0},
            {"attempt": 1},
            {"attempt": 1, "status": "timeout"},
            {"cluster": "d"},
            {"job_id": "x"},
            {"started_at": "2026-11-20T09:00:00Z"},
            {"ended_at": "2026-11-20T10:00:01Z"},
        )
    }
    assert len(keys) == 8
    assert all(len(key) == 64 for key in keys)


def test_what_does_not_identify_does_not_change_the_key() -> None:
    assert (
        from_object(native(attempt=1)).key() == from_object(native(attempt=1, started_at="2026-01-01T00:00:00Z")).key()
    )
    assert from_object(native()).key() == from_object(native(user="ana", message="x")).key()


@pytest.mark.parametrize(
    ("change", "suspect"),
    [
        ({}, False),
        ({"started_at": "2026-11-20T10:00:00Z"}, False),
        ({"started_at": "2026-11-20T10:00:01Z"}, True),
        ({"submitted_at": "2026-11-20T09:30:00Z", "started_at": "2026-11-20T09:00:00Z"}, True),
        ({"ended_at": "2026-11-21T11:00:00Z"}, False),
        ({"ended_at": "2026-11-21T13:00:00Z"}, True),
    ],
)
def test_clocks_that_contradict_themselves_or_run_ahead(change: dict[str, str], suspect: bool) -> None:
    assert from_object(native(**change)).clock_suspect(NOW) is suspect


def test_facts_say_what_classification_may_know() -> None:
    facts = from_object(native(user="ana", gpus=8, nodes=["a"], exit_code=3)).facts()
    assert (facts.status, facts.user, facts.gpus, facts.nodes, facts.exit_code) == ("failed", "ana", 8, ("a",), 3)


@given(st.datetimes(timezones=st.timezones()))
def test_any_time_with_a_zone_is_read_or_refused_by_name(at: datetime) -> None:
    try:
        found = from_object(native(ended_at=at.isoformat()))
    except UnreadableRecord as error:
        field = error.errors[0].field
    else:
        assert isinstance(found, JobCompletion)
        assert found.ended_at - at == timedelta(0)
        return
    assert field == "ended_at"


def test_a_label_with_an_endless_name_is_dropped_without_repeating_the_name() -> None:
    ended = "2026-11-20T10:00:00Z"
    labels = {"a" * 300_000: 1, "token ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2" + "b" * 300: 1}
    read = from_object({"cluster": "c", "job_id": "1", "status": "failed", "ended_at": ended, "labels": labels})
    assert len(read.intake_problems) == 2
    assert all(len(problem) < 300 for problem in read.intake_problems)
    assert "ghp_" not in str(read.intake_problems)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("nodes", [1] * 2_000),
        ("topology", {f"n{number}": 1 for number in range(2_000)}),
        ("labels", {f"n{number}": 1 for number in range(2_000)}),
        ("logs", [{"rank": "x", "tail": 1, "uri": 1}] * 700),
    ],
)
def test_a_list_with_very_many_wrong_values_is_dropped_as_a_whole(
    name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FieldError] = []
    described = contract.described

    def counted(error: FieldError) -> str:
        asked.append(error)
        return described(error)

    monkeypatch.setattr(contract, "described", counted)
    ended = "2026-11-20T10:00:00Z"
    given = {"cluster": "c", "job_id": "1", "status": "failed", "ended_at": ended, "user": 7, name: wrong}
    read = from_object(given)
    assert not getattr(read, name)
    assert len(asked) == 1, "that of the user"
    assert sorted(problem.partition(":")[0] for problem in read.intake_problems) == sorted([name, "user"])
    with pytest.raises(UnreadableRecord) as refused:
        from_object(given | {"status": "odd"})
    assert [one.field for one in refused.value.errors] == ["user", "status"]
