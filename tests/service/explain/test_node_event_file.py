from datetime import UTC, datetime

import orjson
import pytest

from service.errors import InvalidInput
from service.explain.node_event_file import read

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
AT = datetime(2026, 11, 20, 3, 41, 52, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "node", "at"),
    [
        (f"[Fri Nov 20 03:41:52 2026] {XID}\n", None, AT),
        (f"2026-11-20T03:41:52Z gpu1 kernel: {XID}\n", "gpu1", AT),
        (orjson.dumps({"text": XID, "node": "gpu1", "at": "2026-11-20T03:41:52Z"}).decode(), "gpu1", AT),
        (orjson.dumps([{"text": XID}], option=orjson.OPT_INDENT_2).decode(), None, None),
        (f"{XID}\n\n", None, None),
    ],
)
def test_formats(data: str, node: str | None, at: datetime | None) -> None:
    (event,) = read(data.encode(), "events", "c")
    assert (event.text, event.node, event.at) == (XID, node, at)


def test_a_value_that_is_no_node_event_is_named_with_its_line() -> None:
    with pytest.raises(InvalidInput, match="events: line 2"):
        read(b'{"text": "x"}\n{"at": 5}\n', "events", "c")
