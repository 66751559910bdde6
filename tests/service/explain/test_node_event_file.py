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
        (f"kern  :err   : [Fri Nov 20 03:41:52 2026] {XID}\n", None, AT),
        (f"[83112.004512] {XID}\n", None, None),
        (f"2026-11-20T03:41:52Z gpu1 kernel: {XID}\n", "gpu1", AT),
        (orjson.dumps({"text": XID, "node": "gpu1", "at": "2026-11-20T03:41:52Z"}).decode(), "gpu1", AT),
        (orjson.dumps([{"text": XID}], option=orjson.OPT_INDENT_2).decode(), None, None),
        (f"{XID}\n\n", None, None),
    ],
)
def test_an_event_is_read_in_every_accepted_format(data: str, node: str | None, at: datetime | None) -> None:
    (event,) = read(data.encode(), "events", "c")
    assert (event.text, event.node, event.at) == (XID, node, at)


def test_a_change_of_the_whole_cluster_is_of_no_single_node() -> None:
    change = {"cluster": "orion", "source": "change", "at": "2026-11-20T03:41:52Z", "text": "quota set to 1 TiB"}
    [event] = read(orjson.dumps(change), "changes", "c")
    assert (event.source, event.node, event.at) == ("change", None, AT)


def test_states_of_gpus_are_events() -> None:
    states = "=====NVSMI LOG=====\nAttached GPUs : 1\nGPU 00000000:9A:00.0\n    Remapped Rows\n        Pending : Yes\n"
    assert [(one.source, one.text) for one in read(states.encode(), "states", "c")] == [
        ("nvidia-smi", "GPU 0 (PCI 00000000:9a:00.0): row remap pending: yes")
    ]


def test_an_output_of_nvidia_smi_without_gpus_is_named() -> None:
    with pytest.raises(InvalidInput, match="states: not an output of nvidia-smi -q: no GPU is named"):
        read(b"=====NVSMI LOG=====\nDriver Version : 550\n", "states", "c")


def test_a_value_that_is_no_node_event_is_named_with_its_line() -> None:
    with pytest.raises(InvalidInput, match="events: line 2"):
        read(b'{"text": "x"}\n{"at": 5}\n', "events", "c")


@pytest.mark.parametrize("content", ["{0}", "[{0}, {0}]", "{0}\r\n{0}\r\n"])
def test_a_mark_of_the_encoding_and_separators_within_texts_are_no_ends_of_lines(content: str) -> None:
    event = '{"text": "Xid 79\u2028GPU lost\x85", "node": "gpu018", "source": "kernel"}'
    found = read(b"\xef\xbb\xbf" + content.replace("{0}", event).encode(), "events.json", "local")
    assert {(one.node, one.text) for one in found} == {("gpu018", "Xid 79\u2028GPU lost\x85")}
    assert len(found) == content.count("{0}")
