"""What nodes say, in every form it comes in; what is none is refused by field."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.fleet_evidence import evidence_weights
from service.contracts.node_event import NODES_MOST
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped
from service.formats.node_events import parse
from service.formats.node_records.kinds import of_xid, rules
from service.nodes.records import NewNodeEvent, NodeReport

AT = "2026-11-20T03:41:52Z"
WHEN = datetime(2026, 11, 20, 3, 41, 52, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=4711, name=python, GPU has fallen off the bus."


def read_events(obj: Any, headers: Any = (), cluster: str | None = "orion") -> tuple[NewNodeEvent, ...]:
    value = obj if isinstance(obj, bytes) else orjson.dumps(obj)
    found = parse(value, headers, cluster=cluster)
    assert isinstance(found, NodeReport), found
    return found.events


def one(obj: Any, **more: Any) -> NewNodeEvent:
    [found] = read_events(obj, **more)
    return found


def native(**changes: Any) -> dict[str, Any]:
    plain = {"schema": "node-event/1", "cluster": "orion", "node": "gpu018", "at": AT, "source": "kernel", "text": XID}
    return {name: value for name, value in {**plain, **changes}.items() if value is not None}


def test_a_native_event_is_identified_by_its_line() -> None:
    found = one(native(gpu=3))
    assert (found.kind, found.severity, found.gpu, found.node) == ("gpu_lost", "fatal", 3, "gpu018")
    assert found.at == WHEN
    assert found.text == XID


def test_its_identity_is_its_id_or_its_content() -> None:
    assert one(native()).key == one(native(extra="ignored")).key
    assert one(native()).key != one(native(gpu=1)).key
    assert one(native(id="a")).key == one(native(id="a", text="other")).key
    assert one(native(id="a")).key != one(native(id="a", node="gpu019")).key


def test_a_maintenance_of_many_nodes_is_one_window_each() -> None:
    given_by_hand = {
        "cluster": "orion",
        "nodes": ["n1", "n2", "n1"],
        "start": AT,
        "end": "2026-11-20T06:00:00+00:00",
        "kind": "maintenance",
        "text": "firmware",
    }
    found = read_events(given_by_hand, cluster=None)
    assert [one.node for one in found] == ["n1", "n2"]
    assert {(one.kind, one.at, one.until) for one in found} == {
        ("maintenance", WHEN, datetime(2026, 11, 20, 6, tzinfo=UTC))
    }


def test_secrets_are_redacted_before_anything_is_stored() -> None:
    token = "ghp_0123456789abcdefghijABCDEFGHIJ"
    found = one(native(text="x" * 1_980 + f" token={token}", source=f"password={token}"))
    assert "ghp_0123" not in found.text + (found.source or "")
    assert len(found.text) <= 2_000


def test_a_detector_reports_a_corrected_error_of_memory() -> None:
    event = {
        "metadata": {"uid": "6d0c-12"},
        "reason": "MemoryReadError",
        "message": "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        "type": "Warning",
        "lastTimestamp": AT,
        "source": {"component": "kernel-monitor"},
        "involvedObject": {"kind": "Node", "name": "gpu018"},
    }
    assert one(event).kind == "other"
    assert one({**event, "message": "EDAC MC0: 1 UE memory read error on DIMM#0"}).kind == "memory"


def test_every_kind_of_the_rules_is_known() -> None:
    kinds = evidence_weights.load().kinds
    assert {kind for kind, _ in rules().lines} <= set(kinds)
    assert of_xid(79) == "gpu_lost"
    assert of_xid(999) == "gpu_degraded"


def test_cloud_events_structured_and_binary() -> None:
    data = {"node": "gpu018", "text": XID, "gpu": 3}
    envelope = {
        "specversion": "1.0",
        "id": "1",
        "source": "/dcgm",
        "type": "org.example.gpu",
        "time": AT,
        "data": data,
    }
    structured = one(envelope)
    assert (structured.kind, structured.at, structured.cluster) == ("gpu_lost", WHEN, "orion")
    assert one(envelope).key == structured.key
    assert one({**envelope, "id": "2"}).key != structured.key
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"1"),
        ("ce_source", b"/dcgm"),
        ("ce_type", b"org.example.gpu"),
        ("ce_time", AT.encode()),
    ]
    assert one(data, headers=headers).key == structured.key


def test_a_kubernetes_event_of_a_node() -> None:
    event = {
        "metadata": {"name": "gpu-018.18c1", "uid": "6d0c-11", "creationTimestamp": AT},
        "reason": "NodeNotReady",
        "message": "Node gpu-018 status is now: NodeNotReady",
        "type": "Warning",
        "count": 1,
        "source": {"component": "node-controller"},
        "firstTimestamp": AT,
        "lastTimestamp": None,
        "eventTime": None,
        "clusterName": "k8s-ml",
        "involvedObject": {"kind": "Node", "name": "gpu-018"},
    }
    found = one(event)
    assert (found.cluster, found.node, found.kind, found.severity) == ("k8s-ml", "gpu-018", "node_down", "warning")
    assert one({**event, "count": 2}).key != found.key
    pod = {**event, "involvedObject": {"kind": "Pod", "name": "llm-0"}}
    assert isinstance(parse(orjson.dumps(pod)), Skipped)


@pytest.mark.parametrize(
    "again",
    [
        {"deprecatedCount": 5, "deprecatedLastTimestamp": "2026-11-20T05:00:00Z"},
        {"eventTime": AT, "series": {"count": 5, "lastObservedTime": "2026-11-20T05:00:00.000000Z"}},
    ],
)
def test_an_event_of_a_node_that_is_repeated_happened_again(again: dict[str, Any]) -> None:
    first = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "gpu-018.18c1", "uid": "6d0c-11", "creationTimestamp": AT},
        "reason": "SystemOOM",
        "note": "System OOM encountered, victim process: python",
        "type": "Warning",
        "eventTime": None,
        "deprecatedSource": {"component": "kubelet"},
        "deprecatedFirstTimestamp": AT,
        "deprecatedLastTimestamp": AT,
        "deprecatedCount": 1,
        "regarding": {"kind": "Node", "name": "gpu-018"},
    }
    before, after = one(first), one({**first, **again})
    assert (before.at, before.source) == (WHEN, "kubelet")
    assert after.at == WHEN.replace(hour=5, minute=0, second=0)
    assert before.key != after.key


def test_the_conditions_of_a_kubernetes_node() -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "gpu-018"},
        "status": {
            "conditions": [
                {
                    "type": "ReadonlyFilesystem",
                    "status": "True",
                    "reason": "FilesystemIsReadOnly",
                    "lastTransitionTime": AT,
                },
                {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": AT},
                {"type": "KernelDeadlock", "status": "False", "lastTransitionTime": AT},
                {"type": "SomethingElse", "status": "True", "lastTransitionTime": AT},
            ]
        },
    }
    found = read_events({"type": "MODIFIED", "object": node})
    assert [(one.kind, one.resolved) for one in found] == [
        ("disk", False),
        ("node_down", False),
        ("kernel_stuck", True),
    ]
    ready = {**node, "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": AT}]}}
    assert one(ready).kind == "healthy"
    assert isinstance(parse(orjson.dumps({"type": "BOOKMARK", "object": node})), Skipped)


def test_dcgm_health_and_policy_violations() -> None:
    ill = {
        "node": "gpu018",
        "at": AT,
        "header": ["Health Monitor Report"],
        "body": {
            "Overall Health": {"value": "Failure"},
            "GPU": {
                "children": {
                    "3": {
                        "value": "Failure",
                        "children": {"Errors": {"children": {"Memory system": {"value": "Failure", "error": "DBE"}}}},
                    }
                }
            },
        },
    }
    found = one(ill)
    assert (found.kind, found.gpu, found.severity, found.source) == ("gpu_memory", 3, "critical", "dcgm")
    assert one({**ill, "body": {"Overall Health": {"value": "Healthy"}}}).kind == "healthy"
    systems = {"PCIe system": {"value": "Warning"}, "Memory system": {"value": "Failure"}}
    warned = {"Overall Health": {"value": "Failure"}, "GPU": {"children": {"0": {"children": systems}}}}
    both = parse(orjson.dumps({**ill, "body": warned}), cluster="orion")
    assert isinstance(both, NodeReport)
    # PCIe replays are no lost GPU.
    assert [(event.kind, event.severity) for event in both.events] == [
        ("gpu_degraded", "warning"),
        ("gpu_memory", "critical"),
    ]
    odd = {**ill, "body": {"Overall Health": {"value": "Warning"}, "GPU": "what is this"}}
    assert one(odd).kind == "gpu_degraded"
    violation = {"node": "gpu018", "at": AT, "policy_violation": {"condition": "DCGM_POLICY_COND_NVLINK", "gpu": 2}}
    assert (one(violation).kind, one(violation).gpu) == ("gpu_link", 2)
    replays = {"node": "gpu018", "at": AT, "policy_violation": {"condition": "DCGM_POLICY_COND_PCI", "gpu": 2}}
    assert one(replays).kind == "gpu_degraded"
    xid = {"node": "gpu018", "at": AT, "policy_violation": {"condition": "xid", "value": 79}}
    assert one(xid).kind == "gpu_lost"
    exported = {"Hostname": "gpu018", "at": AT, "DCGM_FI_DEV_XID_ERRORS": 79, "gpu": "3"}
    assert (one(exported).kind, one(exported).gpu, one(exported).source) == ("gpu_lost", 3, "dcgm-exporter")
    for as_prometheus_writes in (79.0, "79", "79.0"):
        assert one({**exported, "DCGM_FI_DEV_XID_ERRORS": as_prometheus_writes}).kind == "gpu_lost"
    for wrong in (79.5, "x", "nan", -1, True):
        with pytest.raises(UnreadableRecord, match="DCGM_FI_DEV_XID_ERRORS"):
            parse(orjson.dumps({**exported, "DCGM_FI_DEV_XID_ERRORS": wrong}), cluster="orion")
    for clean in (0, 0.0, "0", None):  # the exporter's value for a GPU that had no Xid
        assert isinstance(parse(orjson.dumps({**exported, "DCGM_FI_DEV_XID_ERRORS": clean})), Skipped)


def test_kernel_lines_by_journald_and_syslog() -> None:
    journal = {
        "__CURSOR": "s=1",
        "__REALTIME_TIMESTAMP": str(int(WHEN.timestamp() * 1_000_000)),
        "_HOSTNAME": "gpu018",
        "_TRANSPORT": "kernel",
        "MESSAGE": XID,
    }
    found = one(journal)
    assert (found.node, found.at, found.kind, found.source) == ("gpu018", WHEN, "gpu_lost", "kernel")
    assert one({**journal, "MESSAGE": list(XID.encode())}).text == XID
    plain = one(f"{AT} gpu018 kernel: [ 12.3] {XID}".encode())
    assert (plain.node, plain.kind) == ("gpu018", "gpu_lost")
    new = one(f"<4>1 {AT} gpu018 kernel - - - {XID}".encode())
    assert (new.node, new.text) == ("gpu018", XID)
    forwarded = one({"host": "gpu018", "@timestamp": AT, "program": "kernel", "message": XID})
    assert forwarded.kind == "gpu_lost"


@pytest.mark.parametrize("node", ["gpu17", "gpu17.cluster.example", "dgx-gpu17"])
def test_the_name_of_a_node_is_no_number_of_a_gpu(node: str) -> None:
    assert one(native(node=node, text=f"Node {node} not responding, setting DOWN")).gpu is None
    assert one(native(node=node, text=f"{node} kernel: GPU 3 is lost")).gpu == 3
    assert one(native(node="n1", text="gpu3 is lost")).gpu == 3


def test_times_of_kernel_lines_without_a_zone_are_in_utc() -> None:
    assert one(f"{AT.removesuffix('Z')} gpu018 kernel: {XID}".encode()).at == WHEN
    assert one({"host": "gpu018", "timestamp": "2026-11-20 03:41:52", "message": XID}).at == WHEN
    assert one(f"2026-11-20T05:41:52+02:00 gpu018 kernel: {XID}".encode()).at == WHEN


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (native(node=None), "(whole object)"),
        (native(at=None), "at"),
        (native(at="yesterday"), "at"),
        (native(at=12), "at"),
        (native(kind="explosion"), "kind"),
        (native(severity="bad"), "severity"),
        (native(gpu=-1), "gpu"),
        (native(gpu="3"), "gpu"),
        (native(resolved="yes"), "resolved"),
        (native(schema="node-event/9"), "schema"),
        (native(node="a\nb"), "node"),
        (native(node="n" * 201), "node"),
        (native(until="2026-11-19T00:00:00Z"), "(whole object)"),
        (native(node=None, nodes=["n"] * (NODES_MOST + 1)), "(whole object)"),
        (native(text=["a"]), "text"),
        ([], "(whole object)"),
        (b"[  123.45] NVRM: Xid 79", "(whole record)"),
        (b"{", "(whole record)"),
        (b"\xff\xfe", "(whole record)"),
        (b"x" * (1024 * 1024 + 1), "(whole record)"),
        ({"MESSAGE": [300], "_HOSTNAME": "n"}, "MESSAGE"),
        ({"MESSAGE": "a", "_HOSTNAME": "n", "__REALTIME_TIMESTAMP": "9" * 30}, "__REALTIME_TIMESTAMP"),
        ({"specversion": "1.0", "id": "1", "source": "s", "type": "t"}, "data"),
    ],
)
def test_what_is_wrong_is_named(value: Any, field: str) -> None:
    raw = value if isinstance(value, bytes) else orjson.dumps(value)
    with pytest.raises(UnreadableRecord) as caught:
        parse(raw, cluster="orion")
    assert caught.value.errors[0].field == field
    assert caught.value.errors[0].expected


def test_a_cluster_is_required() -> None:
    with pytest.raises(UnreadableRecord, match="cluster"):
        parse(orjson.dumps(native(cluster=None)))


def test_envelopes_within_envelopes_end() -> None:
    obj: dict[str, Any] = native()
    for number in range(10):
        obj = {"specversion": "1.0", "id": str(number), "source": "s", "type": "t", "data": obj}
    with pytest.raises(UnreadableRecord, match="envelopes"):
        parse(orjson.dumps(obj))


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    *("schema", "cluster", "node", "nodes", "at", "until", "text", "kind", "gpu", "resolved", "id", "source"),
    *("metadata", "involvedObject", "status", "conditions", "object", "type", "body", "Overall Health", "GPU"),
    *("MESSAGE", "_HOSTNAME", "__REALTIME_TIMESTAMP", "message", "host", "specversion", "data", "policy_violation"),
    *("DCGM_FI_DEV_XID_ERRORS", "violation", "regarding"),
]


def outcome(value: bytes) -> NodeReport | Skipped | UnreadableRecord:
    try:
        return parse(value, cluster="orion")
    except UnreadableRecord as error:
        return error


@given(st.dictionaries(st.sampled_from(NAMES), json, max_size=8))
def test_any_json_gives_an_event_or_an_error_that_names_a_field(obj: dict[str, Any]) -> None:
    found = outcome(orjson.dumps(obj))
    assert not isinstance(found, UnreadableRecord) or found.errors


@given(st.binary(max_size=200))
def test_any_bytes_give_an_event_or_an_error(value: bytes) -> None:
    found = outcome(value)
    assert not isinstance(found, UnreadableRecord) or found.reason


def test_a_tree_of_envelopes_is_refused_and_not_followed() -> None:
    deep = b'{"type": "ADDED", "object": ' * 900 + b"1" + b"}" * 900
    assert isinstance(outcome(deep), UnreadableRecord)
