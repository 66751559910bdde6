"""Shared resources of failures, by name; local disks are not shared."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.contracts import Evidence, Suspect, Verdict
from service.incidents.shared_resources import RESOURCE_ORDER, SharedResource, shared_resources_of, storm_resource
from tests.service.automation.world import event
from tests.service.web.world import HARDWARE, SYSTEM


def result(line: str, verdict: Verdict = SYSTEM, **changes: Any) -> dict[str, str]:
    verdict = replace(verdict, evidence=(Evidence(line, "initiating"),), suspect=changes.pop("suspect", None))
    return {resource.kind: resource.value for resource in shared_resources_of(event("1", "x", **changes), verdict)}


@pytest.mark.parametrize(
    ("line", "kind", "value"),
    [
        ("OSError: [Errno 116] Stale file handle: '/scratch/ana/run7/x.pt'", "file_system", "/scratch"),
        ("cp: cannot stat /mnt/lustre01/data/a: Transport endpoint is not connected", "file_system", "/mnt/lustre01"),
        ("OSError: [Errno 5] Input/output error: '/home/ana/a.pt'", "file_system", "/home"),
        ("kernel: nfs: server nas02.hpc.example not responding, still trying", "storage_host", "nas02.hpc.example"),
        ("LustreError: 167-0: scratch-MDT0000-mdc-ffff8f1c2b000800: evicted", "file_system", "scratch"),
        (
            (
                "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "
                '"https://minio.store.example/train-sets"'
            ),
            "storage_host",
            "minio.store.example",
        ),
        (
            'Failed to pull image "registry.hpc.example/ml/llm:v12": failed to resolve reference',
            "registry",
            "registry.hpc.example",
        ),
    ],
)
def test_a_log_line_names_the_shared_resource(line: str, kind: str, value: str) -> None:
    assert result(line)[kind] == value


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device: '/tmp/torch_x'",
        "OSError: [Errno 5] Input/output error: '/dev/shm/nccl-7'",
        "FileNotFoundError: '/scratch/ana/x.json'",
        "RuntimeError: CUDA error",
    ],
)
def test_local_disks_and_missing_files_are_not_shared_resources(line: str) -> None:
    assert set(result(line)) == {"fingerprint"}


def test_the_suspected_node_has_the_name_of_the_scheduler_in_whatever_letters_the_log_writes_it() -> None:
    assert (
        result("x", HARDWARE, nodes=["GPU018.orion", "GPU019.orion"], suspect=Suspect(node="gpu018"))["node"]
        == "GPU018.orion"
    )


def test_rack_and_switch_come_from_the_topology_of_the_suspected_node() -> None:
    topology = {"gpu018": {"rack": "r7", "switch": "leaf3"}, "gpu019": {"rack": "r8", "switch": "leaf3"}}
    assert result("x", HARDWARE, topology=topology, suspect=Suspect(node="gpu018")) | {"fingerprint": ""} == {
        "node": "gpu018",
        "rack": "r7",
        "switch": "leaf3",
        "fingerprint": "",
    }
    # Without a suspect only what all its nodes share.
    assert result("x", topology=topology) | {"fingerprint": ""} == {"switch": "leaf3", "fingerprint": ""}


def test_user_failures_and_preempted_or_cancelled_jobs_have_no_shared_resources() -> None:
    assert result("x", replace(SYSTEM, side="user")) == {}
    for status in ("preempted", "cancelled"):
        assert result("x", status=status) == {}


def test_the_retry_storm_limit_counts_by_the_first_resource() -> None:
    resources = (SharedResource("file_system", "/scratch", "orion"), SharedResource("fingerprint", "1:x", "orion"))
    assert storm_resource(resources) == "file_system:/scratch"
    assert storm_resource(resources[1:]) == storm_resource(()) == ""


@given(
    line=st.text(max_size=300) | st.sampled_from(["Stale file handle /", "nfs: server  not responding", "pull image"]),
    node=st.none() | st.text(max_size=20),
    topology=st.dictionaries(
        st.text(max_size=5), st.dictionaries(st.sampled_from(["rack", "switch"]), st.integers() | st.text())
    ),
)
@settings(max_examples=150, deadline=None)
def test_any_line_is_accepted_and_the_order_is_kept(line: str, node: str | None, topology: dict[str, Any]) -> None:
    verdict = replace(SYSTEM, evidence=(Evidence(line, "initiating"),), suspect=Suspect(node=node))
    resources = shared_resources_of(event("1", "x", topology=topology), verdict)
    places = [RESOURCE_ORDER.index(resource.kind) for resource in resources]
    assert places == sorted(places)
    assert all(0 < len(resource.key) <= 300 and resource.value for resource in resources)
