import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.hooks.kubernetes.manifest import ManifestError, new_job, new_job_name
from tests.service.hooks.kubernetes.world import job, request

GIB = 2**30
DNS = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def pod_of(made: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = made["spec"]["template"]["spec"]
    return spec


def test_fields_of_the_server_are_removed_and_those_of_people_stay() -> None:
    old = job()
    made = new_job(old, request(resume_from="s3://ckpt/7"))
    assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert "status" not in made
    assert "selector" not in made["spec"]
    for labels in (made["metadata"]["labels"], made["spec"]["template"]["metadata"]["labels"]):
        assert not [key for key in labels if "job-name" in key or "controller-uid" in key]
        assert labels["faultline/request"] == "r7"
    assert made["metadata"]["labels"]["team"] == "vision"
    assert made["spec"]["template"]["metadata"]["labels"]["app"] == "train"
    for annotations in (made["metadata"]["annotations"], made["spec"]["template"]["metadata"]["annotations"]):
        assert annotations["faultline/request"] == "r7"
        assert annotations["faultline/resubmit-of"] == "ml/Job/train"
        assert annotations["faultline/lineage"] == "lab/ml/Job/train"
        assert annotations["faultline/resume-from"] == "s3://ckpt/7"
    assert made["metadata"]["annotations"]["faultline/resubmit"] == "auto"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in made["metadata"]["annotations"]
    assert {"name": "FAULTLINE_RESUME_FROM", "value": "s3://ckpt/7"} in pod_of(made)["containers"][0]["env"]
    assert old == job()


def test_a_manual_selector_is_removed_from_the_new_job() -> None:
    made = new_job(job(manualSelector=True), request())
    assert "manualSelector" not in made["spec"]


def test_a_lineage_continues_over_several_resubmissions() -> None:
    first = new_job(job(), request(extra={}))
    assert first["metadata"]["annotations"]["faultline/lineage"] == "11-22"
    second = new_job({**first, "status": {}}, request(request_id="r8", extra={}, job_id="ml/Job/second"))
    assert second["metadata"]["annotations"]["faultline/lineage"] == "11-22"
    assert second["metadata"]["annotations"]["faultline/request"] == "r8"
    assert len(second["metadata"]["name"]) == len(first["metadata"]["name"])


def test_kueue_starts_its_own_jobs() -> None:
    queued = job()
    queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpus"
    assert new_job(queued, request())["spec"]["suspend"] is True
    assert "suspend" not in new_job(job(), request())["spec"]


def test_excluded_nodes_are_left_out_whatever_affinity_was_there() -> None:
    made = pod_of(new_job(job(), request(exclude_nodes=("gpu1", "gpu2"))))
    required = made["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    without = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("gpu1", "gpu2")]
    assert required == {"nodeSelectorTerms": [{"matchFields": without}]}
    old = job()
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    pod_of(old)["affinity"] = {
        "podAffinity": {"x": 1},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [1],
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": copy.deepcopy(zones)},
        },
    }
    affinity = pod_of(new_job(old, request(exclude_nodes=("gpu1",))))["affinity"]
    assert affinity["podAffinity"] == {"x": 1}
    assert affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [1]
    assert affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {**zone, "matchFields": without[:1]} for zone in zones
    ]


@pytest.mark.parametrize("bound", [{"nodeName": "gpu1"}, {"nodeSelector": {"kubernetes.io/hostname": "gpu1"}}])
def test_a_job_bound_to_the_bad_node_can_t_run_elsewhere(bound: dict[str, Any]) -> None:
    old = job()
    pod_of(old).update(bound)
    with pytest.raises(ManifestError, match="gpu1"):
        new_job(old, request(exclude_nodes=("gpu1",)))


def memory(made: dict[str, Any]) -> dict[str, Any]:
    resources: dict[str, Any] = pod_of(made)["containers"][0]["resources"]
    return resources


def test_memory_is_raised_with_the_request_where_it_was_the_same() -> None:
    made = memory(new_job(job(), request(changes={"memory_bytes": 12 * GIB})))
    assert made["limits"] == {"memory": str(12 * GIB), "nvidia.com/gpu": "8"}
    assert made["requests"] == {"memory": str(12 * GIB)}
    smaller = job()
    memory(smaller)["requests"]["memory"] = "1Gi"
    assert memory(new_job(smaller, request(changes={"memory_bytes": 12 * GIB})))["requests"] == {"memory": "1Gi"}


@pytest.mark.parametrize("pods", [2, 3, 8])
def test_memory_stated_for_all_pods_is_divided_among_them(pods: int) -> None:
    made = new_job(job(parallelism=pods), request(changes={"memory_bytes": pods * 12 * GIB}))
    assert memory(made)["limits"]["memory"] == str(12 * GIB)
    made = new_job(job(parallelism=pods), request(changes={"memory_bytes": 12 * GIB}))  # stated for one of them
    assert memory(made)["limits"]["memory"] == str(12 * GIB)


def test_memory_is_never_lowered_and_never_absurd() -> None:
    assert memory(new_job(job(), request(changes={"memory_bytes": GIB})))["limits"]["memory"] == "8Gi"
    with pytest.raises(ManifestError, match="4 times"):
        new_job(job(), request(changes={"memory_bytes": 100 * GIB}))
    unlimited = job()
    pod_of(unlimited)["containers"][0].pop("resources")
    with pytest.raises(ManifestError, match="no container"):
        new_job(unlimited, request(changes={"memory_bytes": GIB}))


def test_a_deadline_is_raised_only_where_there_is_one() -> None:
    changes = {"time_limit_s": 7200}
    assert new_job(job(activeDeadlineSeconds=3600), request(changes=changes))["spec"]["activeDeadlineSeconds"] == 7200
    assert "activeDeadlineSeconds" not in new_job(job(), request(changes=changes))["spec"]


names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(names, st.text(alphabet="abc123", min_size=1, max_size=64))
def test_the_name_of_a_new_job_is_valid_and_unique_to_the_request(old: str, request_id: str) -> None:
    made = new_job_name(old, request_id)
    assert DNS.fullmatch(made)
    assert made == new_job_name(old, request_id)
    assert made == new_job_name(new_job_name(old, "another"), request_id) or len(old) > 63 - 12
    assert made != new_job_name(old, request_id + "x")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["completionMode", "podFailurePolicy", "tolerations", "x"]), values))
def test_unknown_fields_of_a_job_are_kept(more: dict[str, Any]) -> None:
    made = new_job(job(**more), request())
    assert {key: made["spec"][key] for key in more} == more
