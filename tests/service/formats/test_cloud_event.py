from typing import Any

import pytest
from cloudevents.core.bindings import kafka
from cloudevents.core.v1.event import CloudEvent

from service.contracts.event import JobCompletion
from service.errors import UnreadableRecord
from service.formats.recognise import parse
from tests.service.formats.examples import event, load, read


def structured(**change: Any) -> dict[str, Any]:
    return {**load("cloudevent"), **change}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/cloudevents+json; charset=UTF-8"},
        {"Content-Type": "Application/CloudEvents+JSON", "ce_id": "also here"},
        {"traceparent": "00-x"},
    ],
)
def test_an_envelope_is_recognised_with_or_without_its_content_type(headers: dict[str, str]) -> None:
    assert event(structured(), headers).job_id == "31877"


@pytest.mark.parametrize("prefix", ["ce_", "ce-", "CE-"])
def test_binary_mode_with_either_spelling_of_its_headers(prefix: str) -> None:
    example = load("cloudevent_binary")
    headers = {
        name.replace("ce_", prefix): value for name, value in example["headers"].items() if name != "content-type"
    }
    assert event(example["value"], headers).job_id == "31877"


def test_headers_that_make_no_cloud_event_are_passed_over() -> None:
    assert event(load("slurm"), {"ce_id": "1", "ce_type": "t"}).job_id == "31877"


@pytest.mark.parametrize("name", ["native", "slurm", "pod", "job", "trainjob", "rayjob", "ray", "slurm_epilog"])
def test_the_data_may_be_any_other_format(name: str) -> None:
    assert event(structured(data=load(name))).key() == event(load(name)).key()


def test_the_data_may_be_text_that_holds_json() -> None:
    assert event(structured(data='{"cluster":"c","job_id":"1","status":"failed","ended_at":"2026-01-01T00:00:00Z"}'))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": None}, "specversion"),
        ({"id": ""}, "id"),
        ({"source": None}, "source"),
        ({"type": 3}, "type"),
        ({"time": "noon"}, "time"),
        ({"subject": ""}, "subject"),
        ({"Camel": "x"}, "Camel"),
        ({"data": None}, "data"),
        ({"data": None, "data_base64": "!!"}, "data_base64"),
        ({"data": [1]}, "(whole object)"),
        ({"data": "{"}, "(whole record)"),
    ],
)
def test_a_wrong_envelope_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        read(structured(**change))
    assert caught.value.errors[0].field == field


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ([("content-type", b"application/cloudevents-batch+json")], "content-type"),
        ([("content-type", b"application/cloudevents+avro")], "content-type"),
        ([("ce_id", b"\xff")], "ce_id"),
        (
            [("ce_id", b"1"), ("ce_type", b"t"), ("ce_source", b"s"), ("ce_specversion", b"2.0")],
            "specversion",
        ),
    ],
)
def test_wrong_headers_are_refused_by_name(headers: list[tuple[str, bytes]], field: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        parse(b"{}", headers, cluster="c")
    assert caught.value.errors[0].field == field


def test_a_structured_record_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnreadableRecord):
        parse(b"[1]", [("content-type", b"application/cloudevents+json")])


def test_the_library_that_writes_cloud_events_is_understood() -> None:
    written = CloudEvent({"type": "t", "source": "s", "id": "1"}, load("slurm"))
    for message in (kafka.to_binary_event(written), kafka.to_structured_event(written)):
        found = parse(message.value, list(message.headers.items()))
        assert isinstance(found, JobCompletion)
        assert found.job_id == "31877"
