from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.field_reading import Skipped
from service.formats.node_records import kubernetes
from service.watch import node_watch
from service.watch.node_watch import NodeStates, event_line, observed
from tests.service.watch.objects import NOW, node


def known(*objects: dict[str, Any]) -> NodeStates:
    made = NodeStates()
    for one in objects:
        made.put(one, NOW)
    return made


@pytest.mark.parametrize(
    ("one", "lost"),
    [
        (node(), False),
        (node(ready="False"), False),
        (node(ready="Unknown"), True),
        (node("gpu1", "False", "node.kubernetes.io/out-of-service"), True),
        (node("gpu1", "True", "team/reserved"), False),
    ],
)
def test_a_node_is_lost_when_its_kubelet_is_silent_or_it_is_given_up(one: dict[str, Any], lost: bool) -> None:
    assert known(one).lost("gpu1") is lost
    assert (known(one).silent("gpu1") is not None) is lost


def test_conditions_against_a_node_are_sent() -> None:
    lines = known(node("gpu1", "Unknown", GPUBroken="True", DiskPressure="False")).lines("gpu1")
    assert [line.text for line in lines] == ["ReadyIsUnknown: m", "GPUBroken: GPUBrokenIsTrue: m"]
    assert {line.node for line in lines} == {"gpu1"}
    lines = known(node("gpu1", "True", AcceleratedHardwareReady="False")).lines("gpu1")
    assert [line.text for line in lines] == ["AcceleratedHardwareReady: AcceleratedHardwareReadyIsFalse: m"]
    assert known(node("gpu1", "True", AcceleratedHardwareReady="True")).lines("gpu1") == []
    assert known(node()).lines("gpu1") == []
    assert known().lines("gpu9") == []


def test_a_deleted_node_is_lost_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    made = known(node())
    made.gone("gpu1", NOW)
    assert made.lost("gpu1")
    assert made.silent("gpu1") == "node gpu1 is gone"
    assert "deleted" in made.lines("gpu1")[-1].text
    made.gone("gpu2", NOW + node_watch.GONE_FOR + timedelta(seconds=1))
    assert not made.lost("gpu1")
    monkeypatch.setattr(node_watch, "GONE_MOST", 2)
    for number in range(5):
        made.gone(f"n{number}", NOW + node_watch.GONE_FOR)
    assert not made.lost("n0")
    assert made.lost("n4")


def only(found: list[Mapping[str, Any]] | Skipped) -> Mapping[str, Any]:
    assert not isinstance(found, Skipped)
    [one] = found
    return one


def test_nodes_and_events_are_sent_as_the_service_reads_them() -> None:
    small = observed(node(ready="Unknown"), "lab")
    assert "images" not in small["status"]
    assert "labels" not in small["metadata"]
    read = only(kubernetes.read(small, None))
    assert (read["cluster"], read["node"]) == ("lab", "gpu1")
    event = {
        "metadata": {"name": "x", "uid": "u", "managedFields": [1]},
        "involvedObject": {"kind": "Node", "name": "gpu1"},
        "reason": "Rebooted",
        "message": "boot id",
        "lastTimestamp": "2026-11-21T11:00:00Z",
    }
    read = only(kubernetes.read(observed(event, "lab"), None))
    assert (read["cluster"], read["node"], read["text"]) == ("lab", "gpu1", "Rebooted: boot id")


def test_an_event_s_time_is_the_last_one_that_is_known() -> None:
    event = {"reason": "Evicted", "message": "low", "involvedObject": {"kind": "Pod", "name": "p"}}
    times = {"lastTimestamp": None, "eventTime": "2026-11-21T11:00:00.123456789Z", "firstTimestamp": "soon"}
    found = event_line({**event, **times}, "gpu1")
    assert found is not None
    assert found.text == "Pod p: Evicted: low"
    assert found.at is not None
    assert found.at.hour == 11
    untimed = event_line({**event, "lastTimestamp": "soon"})
    assert untimed is not None
    assert untimed.at is None
    assert event_line({"message": "no reason"}) is None


def test_a_secret_is_removed_before_the_text_of_an_event_is_cut() -> None:
    secret = "ghp_aB1cDeFgHiJkLmNoPqRsTuVwXyZ123456789"
    about = {"kind": "Pod", "name": "p"}
    line = event_line({"involvedObject": about, "reason": "Failed", "message": f"{'a b ' * 493}{secret}"})
    assert line is not None
    assert len(line.text) > 1_900
    assert "ghp_aB" not in line.text


@given(
    st.dictionaries(
        st.sampled_from(["metadata", "spec", "status", "involvedObject", "reason", "message", "source", "eventTime"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["name", "conditions", "taints", "key", "type", "kind"]), inner)
            ),
            max_leaves=8,
        ),
    )
)
def test_no_object_makes_it_crash(obj: dict[str, Any]) -> None:
    made = NodeStates()
    before, now = made.put(obj, NOW)
    assert before is None
    assert now is None or made.lost(now.name) is now.lost
    line = event_line(obj)
    assert line is None or line.text
