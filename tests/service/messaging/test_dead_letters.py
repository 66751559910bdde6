import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import FieldError, UnreadableRecord
from service.formats import recognise
from service.messaging import batching
from service.messaging.dead_letters import COMMON_BYTES, TEXT_CHARACTERS, Rejected, dead_letter, message, readable
from service.messaging.record import Record

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


def test_holds_place_reason_digest_and_the_beginning_of_the_text() -> None:
    raw = b'{"cluster": "orion", \xff\x00'
    error = UnreadableRecord("not JSON", (FieldError("(whole record)", "JSON", None),))
    letter = dead_letter(raw, "jobs/3/17", error)
    assert letter.place == "jobs/3/17"
    assert letter.sha256 == hashlib.sha256(raw).hexdigest()
    assert letter.reason == "not JSON"
    assert letter.errors == ({"field": "(whole record)", "expected": "JSON", "got": None},)
    assert letter.text == '{"cluster": "orion", \ufffd\ufffd'


def test_a_deletion_marker_has_an_empty_text() -> None:
    assert dead_letter(None, "jobs/0/0", UnreadableRecord("empty")).text == ""


def test_no_secret_stays_in_text_reason_or_errors() -> None:
    error = UnreadableRecord(f"unknown field {SECRET}", (FieldError("labels", "a string", f"token {SECRET}"),))
    letter = dead_letter(f'{{"command": "run --token {SECRET}"'.encode(), "jobs/0/0", error)
    assert SECRET not in json.dumps([letter.text, letter.reason, list(letter.errors)])


ENVELOPE = {"specversion": "1.0", "type": "t", "source": "s", "id": "1", "data": {}}
ENDLESS = "a" * 300_000


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        ({**ENVELOPE, ENDLESS: "x"}, ()),
        ({**ENVELOPE, **{f"wrong {number}": "x" for number in range(2_000)}}, ()),
        ({"schema": "job-completion/1", "labels": {ENDLESS: 1}}, ()),
        ({"kind": ENDLESS, "apiVersion": ENDLESS}, ()),
        ({ENDLESS: 1}, ()),
        ({}, ((f"ce_{ENDLESS}", b"\xff"),)),
        ({}, (("content-type", b"application/cloudevents" + ENDLESS.encode()),)),
    ],
)
def test_a_record_does_not_fill_the_table_with_what_is_wrong(
    value: dict[str, Any], headers: tuple[tuple[str, bytes], ...]
) -> None:
    raw = json.dumps(value).encode()
    error = batching.read(recognise.parse, raw, headers, cluster="orion", source="topic/jobs")
    assert isinstance(error, UnreadableRecord)
    assert len(error.reason) < 1_000
    assert len(json.dumps(dead_letter(raw, "jobs/0/0", error).errors)) < 10_000


def test_errors_of_any_origin_are_cut() -> None:
    error = UnreadableRecord("wrong", (FieldError(ENDLESS, ENDLESS, ENDLESS),) * 100)
    assert len(json.dumps(dead_letter(b"{", "jobs/0/0", error).errors)) < 150_000


@pytest.mark.parametrize("length", [1_990, 2_001, 10_000, 100_000])
def test_the_beginning_of_a_long_reason_stays(length: int) -> None:
    reason = f"password={SECRET} wrong field " + "y" * (length - 40)
    letter = dead_letter(b"{", "jobs/0/0", UnreadableRecord(reason))
    assert letter.reason.startswith("password=[redacted] wrong field y")
    assert len(letter.reason) <= 2_001


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-16", "utf-32"])
def test_no_encoding_hides_a_secret(encoding: str) -> None:
    text = readable(f'{{"command": "run --token {SECRET}"}}'.encode(encoding))
    assert "[redacted]" in text
    assert "command" in text


@given(st.integers(-40, 40), st.integers(0, 50_000))
def test_a_secret_at_the_cut_does_not_stay_either(shift: int, after: int) -> None:
    before = "x" * (TEXT_CHARACTERS + shift - len(SECRET) // 2 - 1) + " "
    text = readable((before + SECRET + " " + "y" * after).encode())
    assert SECRET[:12] not in text
    assert len(text) <= TEXT_CHARACTERS + 1


@given(st.binary(max_size=2_000))
def test_any_bytes_become_text_that_a_database_takes(raw: bytes) -> None:
    text = readable(raw)
    assert "\x00" not in text
    text.encode("utf-8")


def rejected(**changes: Any) -> Rejected:
    record = Record(
        **{
            "value": b"{",
            "headers": (("ce_id", b"1"),),
            "topic": "jobs",
            "partition": 0,
            "offset": 9,
            "cluster": "orion",
            "key": b"k",
            **changes,
        }
    )
    return Rejected(record, dead_letter(record.value, record.place, UnreadableRecord("not JSON")))


def test_on_the_topic_it_is_unchanged_with_reason_and_position_in_headers() -> None:
    sent = message(rejected())
    assert (sent.value, sent.key) == (b"{", b"k")
    assert dict(sent.headers) == {
        "ce_id": b"1",
        "faultline-reason": b"not JSON",
        "faultline-place": b"jobs/0/9",
        "faultline-sha256": hashlib.sha256(b"{").hexdigest().encode(),
        "faultline-cluster": b"orion",
    }


def test_a_letter_that_came_back_does_not_carry_its_old_reason() -> None:
    sent = message(rejected(headers=(("faultline-reason", b"old"), ("faultline-cut", b"old"))))
    assert [value for name, value in sent.headers if name == "faultline-reason"] == [b"not JSON"]
    assert "faultline-cut" not in dict(sent.headers)


def test_cut_it_says_how_much_is_missing() -> None:
    sent = message(rejected(value=b"z" * (COMMON_BYTES + 5)), cut=COMMON_BYTES)
    assert sent.value == b"z" * COMMON_BYTES
    assert dict(sent.headers)["faultline-cut"] == b"900000 of 900005 bytes, 1 headers left out"
