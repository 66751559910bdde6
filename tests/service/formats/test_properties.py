"""Whatever comes in, the answer is an event, a skip or an UnreadableRecord that names a place."""

import copy
import json
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.contracts.event import JobCompletion
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped
from service.formats.recognise import parse
from tests.service.formats.examples import NAMES, load

EXAMPLES = {name: load(name).get("value", load(name)) for name in NAMES}
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", "0:1", "a[1-2]", "2026-11-18T00:00:00Z", "0001-01-01T00:00:00+14:00", "%j%r", "Failed"])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["ce_id", "ce_type", "ce_source", "ce_specversion", "ce-time", "content-type", "x"]),
        st.sampled_from([b"1.0", b"application/cloudevents+json", b"", b"\xff", b"x"]) | st.binary(max_size=8),
    ),
    max_size=6,
)


def holds(value: bytes, headers: Any = ()) -> None:
    try:
        found = parse(value, headers, cluster="c")
    except UnreadableRecord as error:
        refused = error.errors
    else:
        if isinstance(found, Skipped):
            assert found.reason
        else:
            holds_event(found)
        return
    assert refused
    assert all(place.field and place.expected for place in refused)


def holds_event(found: JobCompletion) -> None:
    assert 0 < len(found.key()) <= 200
    stored = found.model_dump_json(by_alias=True)
    again = parse(stored.encode())
    assert isinstance(again, JobCompletion)
    assert again.key() == found.key()
    assert "\\u0000" not in stored


@given(st.binary(max_size=300), HEADERS)
def test_any_bytes_are_read_or_refused(value: bytes, headers: Any) -> None:
    holds(value, headers)


@given(JSON)
def test_any_json_is_read_or_refused(obj: Any) -> None:
    holds(json.dumps(obj).encode())


def places(obj: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items = obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
    for key, inner in items:
        found += places(inner, (*at, key))
    return found


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_worked_examples_with_something_else_in_their_places(data: st.DataObject) -> None:
    obj = copy.deepcopy(EXAMPLES[data.draw(st.sampled_from(NAMES))])
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(obj)))
        inner = obj
        for key in path:
            inner = inner[key]
        if data.draw(st.booleans()) and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = data.draw(JSON)
        if not places(obj):
            break
    holds(json.dumps(obj).encode())


@given(st.sampled_from(NAMES), st.data())
def test_worked_examples_cut_short_or_overwritten(name: str, data: st.DataObject) -> None:
    value = bytearray(orjson.dumps(EXAMPLES[name]))
    at = data.draw(st.integers(0, len(value) - 1))
    if data.draw(st.booleans()):
        value = value[:at]
    else:
        value[at : at + 4] = data.draw(st.binary(max_size=6))
    holds(bytes(value), data.draw(HEADERS))
