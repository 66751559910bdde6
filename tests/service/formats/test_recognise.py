import base64
import json
from typing import Any

import orjson
import pytest

from service.contracts.event import MAX_EVENT_BYTES, JobCompletion
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped
from service.formats.recognise import parse
from tests.service.formats.examples import NAMES, event, load, read, skipped

NO_END = {"slurm_start", "slurm_requeue"}


@pytest.mark.parametrize("name", NAMES)
def test_every_worked_example_is_an_event_or_no_end(name: str) -> None:
    example = load(name)
    found = read(example["value"], example["headers"]) if "headers" in example else read(example)
    assert isinstance(found, Skipped if name in NO_END else JobCompletion)


def test_a_native_event_is_read_with_and_without_its_schema() -> None:
    bare = {key: value for key, value in load("native").items() if key != "schema"}
    assert event(bare).key() == event(load("native")).key()
    assert (event(bare).model_extra or {})["site_note"] == "kept as it is"


@pytest.mark.parametrize(
    "others",
    [
        {"kind": "training", "metadata": {"owner": "ana"}},
        {"jobid": "1234", "SLURM_JOB_ID": "1234"},
        {"type": "ADDED", "object": {"a": 1}},
        {"entrypoint": "train.py", "submission_id": "raysubmit_1"},
        {"involvedObject": {}},
    ],
)
def test_fields_of_the_site_that_other_formats_have_too_are_kept(others: dict[str, Any]) -> None:
    bare = {key: value for key, value in load("native").items() if key != "schema"}
    found = event({**bare, **others})
    assert found.key() == event(bare).key()
    assert others.items() <= (found.model_extra or {}).items()


@pytest.mark.parametrize("schema", ["job-completion/2", "job-completion", "", 1, None])
def test_an_unknown_schema_is_refused_by_name(schema: Any) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        read({**load("native"), "schema": schema})
    assert [place.field for place in caught.value.errors] == ["schema"]


def test_one_job_has_one_key_whichever_way_it_comes() -> None:
    record = load("slurm")
    bare = {key: value for key, value in record.items() if key != "cluster"}
    binary = load("cloudevent_binary")
    encoded = {**{k: v for k, v in load("cloudevent").items() if k != "data"}, "data_base64": _base64(record)}
    keys = {
        event(record).key(),
        event(bare, cluster="aurora").key(),
        event(load("cloudevent")).key(),
        event(encoded).key(),
        event(binary["value"], binary["headers"]).key(),
        event({**load("cloudevent"), "id": "another envelope"}).key(),
        event(load("slurm_epilog")).key(),
        event(load("slurm_accounting")).key(),
    }
    assert len(keys) == 1


def _base64(record: Any) -> str:
    return base64.b64encode(orjson.dumps(record)).decode()


def test_the_clusters_own_name_wins_over_the_topics() -> None:
    assert event(load("slurm"), cluster="other").cluster == "aurora"
    assert event({k: v for k, v in load("native").items() if k != "cluster"}, cluster="here").cluster == "here"


@pytest.mark.parametrize("name", ["slurm", "native", "pod", "ray"])
def test_without_any_name_of_the_cluster_the_record_is_refused(name: str) -> None:
    with pytest.raises(UnreadableRecord, match="cluster"):
        read({k: v for k, v in load(name).items() if k != "cluster"}, cluster=None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "not JSON"),
        (b'{"jobid": 1', "not JSON"),
        (b'{"job_id": "\xff"}', "not JSON"),
        (b'{"job_id": "a\x00b"}', "not JSON"),
        (b'{"gpus": NaN}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"null", "(whole object)"),
        (b"[]", "(whole object)"),
        (b"{}", "(whole object)"),
        (b'{"hello": 1}', "(whole object)"),
        (b'{"jobid": 123456789012345678901234567890, "state": "FAILED"}', "jobid"),
        (b'{"kind": "Deployment", "apiVersion": "apps/v1"}', "kind"),
        (b'{"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "x"}}', "kind"),
        (b'{"kind": ["Pod"], "metadata": {}}', "kind"),
    ],
)
def test_what_cant_be_read_says_where(value: bytes, expected: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        parse(value, cluster="lab")
    assert expected in str(caught.value)
    assert caught.value.errors


def test_more_than_sixteen_mebibytes_are_not_even_decoded() -> None:
    with pytest.raises(UnreadableRecord, match="at most 16777216 bytes"):
        parse(b" " * (MAX_EVENT_BYTES + 1))


def test_the_last_value_of_a_repeated_key_counts() -> None:
    text = orjson.dumps(load("native"))[:-1] + b', "status": "timeout"}'
    found = parse(text)
    assert isinstance(found, JobCompletion)
    assert found.status == "timeout"


@pytest.mark.parametrize("broken", ["a\x00b", "a\ud800b"])
def test_characters_that_no_database_holds_are_replaced_in_text_and_refused_in_names(broken: str) -> None:
    found = parse(json.dumps({**load("native"), "message": broken, "labels": {broken: broken}}).encode())
    assert isinstance(found, JobCompletion)
    assert found.message == "a\ufffdb"
    assert found.labels == {"a\ufffdb": "a\ufffdb"}
    with pytest.raises(UnreadableRecord, match="job_id"):
        parse(json.dumps({**load("native"), "job_id": broken}).encode())


def test_an_escaped_null_character_from_a_topic_is_replaced_too() -> None:
    assert event({**load("native"), "message": "a\x00b"}).message == "a\ufffdb"


@pytest.mark.parametrize(("written", "read"), [("a\udc80b", "a\ufffdb"), ("\U0001f600\ud83d", "\U0001f600\ufffd")])
def test_half_characters_from_a_topic_are_replaced_too(written: str, read: str) -> None:
    text = json.dumps({**load("native"), "message": written}).encode()
    found = parse(text)
    assert isinstance(found, JobCompletion)
    assert found.message == read
    for broken in (text[:-1], text.replace(b'"message"', b'"x": NaN, "message"'), text + b"[" * 100_000):
        with pytest.raises(UnreadableRecord, match="not JSON"):
            parse(broken)


def test_a_deletion_marker_is_no_job() -> None:
    assert isinstance(parse(None), Skipped)


def test_events_and_bookmarks_of_a_watch_are_no_ends() -> None:
    assert "BOOKMARK" in skipped({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {}}})
    assert "Event" in skipped({"kind": "Event", "apiVersion": "v1", "metadata": {"name": "x"}})
    assert "Event" in skipped({"involvedObject": {"kind": "Pod"}, "reason": "Evicted"})


@pytest.mark.parametrize(("levels", "reason"), [(101, "nested"), (1_000, "nested"), (100_000, "not JSON")])
def test_json_nested_too_deep_is_refused(levels: int, reason: str) -> None:
    text = orjson.dumps({**load("native"), "labels": 0}).replace(
        b'"labels":0', b'"labels":' + b"[" * levels + b"]" * levels
    )
    with pytest.raises(UnreadableRecord, match=reason):
        parse(text)


def test_envelopes_in_envelopes_end() -> None:
    wrapped = load("slurm")
    for _ in range(4):
        wrapped = {**load("cloudevent"), "data": wrapped}
    assert event(wrapped).job_id == "31877"
    with pytest.raises(UnreadableRecord, match="envelopes"):
        read({**load("cloudevent"), "data": wrapped})


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"cluster": "c", "job_id": "1", "status": "odd", "ended_at": "2026-11-20T10:00:00Z"}, "status"),
        ({"cluster": "c", "jobid": 1, "state": "FAILED", "@end": "soon"}, "@end"),
    ],
)
def test_the_reason_of_a_refused_record_says_what_was_expected(record: dict[str, object], field: str) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        parse(orjson.dumps(record))
    assert caught.value.reason == f"{field}: expected {caught.value.errors[0].expected}"
