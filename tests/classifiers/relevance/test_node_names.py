"""Node events are told by their node's name, however it is written: which are of the job, and which of one node."""

from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import Evidence
from classifiers.relevance.event_candidates import Reason
from tests.classifiers.packaged_catalogue import EXTRACTOR

XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4410, name=python, GPU has fallen off the bus."
FAULT = "RuntimeError: CUDA error: unspecified launch failure\n"


def seen(nodes: list[str], events: list[tuple[str, str, str, str]], tail: str = FAULT) -> list[Evidence]:
    """The evidence of a job on some nodes, with events of a node, a source, a time of the day and a text."""
    event: dict[str, Any] = {
        "status": "failed",
        "exit_code": 1,
        "nodes": nodes,
        "gpus": 8 * len(nodes),
        "started_at": "2026-11-20T08:00:00Z",
        "ended_at": "2026-11-20T10:00:00Z",
        "logs": [{"rank": 0, "node": nodes[0], "tail": tail}],
        "node_events": [
            {"node": node, "source": source, "at": f"2026-11-20T{at}Z", "text": text}
            for node, source, at, text in events
        ],
    }
    return list(EXTRACTOR.extract(build_case(event)).case.evidence)


@pytest.mark.parametrize(
    ("own", "other"),
    [("10.0.3.17", "10.0.9.9"), ("10.0.3.1", "10.0.3.17"), ("cn-hangzhou.192.168.0.5", "cn-hangzhou.192.168.0.50")],
)
def test_of_nodes_with_addresses_for_names_only_the_jobs_own_count(own: str, other: str) -> None:
    [of_own] = [one for one in seen([own], [(own, "kernel", "09:59:50", XID)]) if one.text == XID]
    [of_other] = [one for one in seen([own], [(other, "kernel", "09:59:50", XID)]) if one.text == XID]
    assert (of_own.node, of_own.note) == (own, None)
    assert of_other.note == Reason.OTHER_NODE


DOWN = "mlx5_core 0000:9c:00.0 ib0: Link down"
UP = "mlx5_core 0000:9c:00.0 ib0: Link up"


@pytest.mark.parametrize("other", ["gpu1", "gpu1.orion.example", "GPU1"])
def test_sources_that_name_a_node_in_two_ways_report_on_one_node(other: str) -> None:
    events = [("gpu1", "kernel", "09:20:00", DOWN), (other, "switchd", "09:20:05", UP)]
    shown = seen(["gpu1"], events, "ncclRemoteError: A call failed possibly due to a network error\n")
    assert [(one.node, one.note) for one in shown if one.text == DOWN] == [("gpu1", Reason.RECOVERED)]


def test_an_event_that_arrives_twice_is_one_event() -> None:
    once = [("gpu1", "kernel", "09:59:50", XID), ("gpu1", "kernel", "09:59:51", DOWN)]
    assert seen(["gpu1"], [*once, *once]) == seen(["gpu1"], once)


def test_nodes_of_two_domains_keep_their_names() -> None:
    event = {"nodes": ["n1.east", "n1.west"], "node_events": [{"node": "n1.west", "text": XID}]}
    assert [one.node for one in build_case(event).node_events] == ["n1.west"]


@pytest.mark.parametrize("name", ["dgx-07", "DGX-07"])
def test_what_a_monitor_reports_of_a_node_counts_in_all_letters(name: str) -> None:
    text = f"{name} {XID}"
    [shown] = [one for one in seen([name, "gpu8"], [("monitor1", "syslog", "09:59:50", text)]) if one.text == text]
    assert shown.note is None


def test_a_device_is_no_node_in_capitals() -> None:
    text = "NVRM: Xid (PCI:0000:9d:00): 119, pid=70, name=python, Timeout after 6s of waiting for RPC from GPU6 GSP!"
    [shown] = [one for one in seen(["GPU6"], [("gpu9", "kernel", "09:59:50", text)]) if one.text == text]
    assert shown.note == Reason.OTHER_NODE
