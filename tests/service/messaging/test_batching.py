"""A record that cannot be read keeps nothing in memory of the batch that it came with."""

import gc
import json
import weakref
from typing import Any

import pytest

from service.formats import recognise
from service.messaging import batching
from tests.service.web.world import event

NO_TIME: dict[str, Any] = {"hour": 3}
LINE = {"at": NO_TIME, "node": "gpu001", "text": "Xid 79"}
WRONG: dict[str, dict[str, Any]] = {
    "a required time": {"ended_at": NO_TIME},
    "an optional time": {"started_at": NO_TIME},
    "two fields of which the second is found later": {"started_at": NO_TIME, "checkpoint": {"at": NO_TIME, "uri": 7}},
    "a time of a node event": {"node_events": [LINE, {**LINE, "at": "3 o'clock"}]},
}


class Batch:
    """Stands for the records of a batch."""


def read_beside(value: bytes) -> tuple[object, "weakref.ref[Batch]"]:
    """Read a record in a frame that holds the other records of its batch, as the consumer does."""
    batch = Batch()
    found = batching.read(recognise.parse, value, source="topic/jobs")
    return found, weakref.ref(batch)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_record_does_not_keep_its_batch(wrong: str) -> None:
    found, batch = read_beside(json.dumps(event(**WRONG[wrong])).encode())
    del found
    gc.collect()
    assert batch() is None
