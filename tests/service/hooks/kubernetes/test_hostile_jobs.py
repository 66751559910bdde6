"""Jobs on a real API server whose owners, or others in their namespace, try to mislead the hook."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.clock import SystemClock
from service.hooks.kubernetes.manifest import new_job_name
from service.hooks.kubernetes.scheduler import KubernetesScheduler
from service.hooks.request import Ready, Request, Settled
from service.kubernetes.api import connect
from service.kubernetes.paths import named
from tests.labs.kubernetes import NAMESPACE, Kubernetes
from tests.labs.kubernetes_tools import patch
from tests.service.hooks.kubernetes.world import Lease

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kubernetes")]  # one control plane at a time

RULES = Path(__file__).parents[4] / "deploy" / "kubernetes" / "faultline" / "files" / "hook-rules.yaml"
GROUP = "rbac.authorization.k8s.io"
OPT_IN = "faultline/resubmit"


@pytest.fixture(scope="module")
def hook(kubernetes_cluster: Kubernetes) -> KubernetesScheduler:
    """The hook with the rights of the chart."""
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "hook"}
    path = kubernetes_cluster.account(
        "hook",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hook"}},
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "hook"},
            "rules": yaml.safe_load(RULES.read_text()),
        },
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "hook"},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": "hook", "namespace": NAMESPACE}],
        },
    )
    return KubernetesScheduler(connect(path), SystemClock())


def job(name: str, **metadata: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "reg/train:7", "resources": {"limits": {"memory": "8Gi"}}}
    pods = {"spec": {"restartPolicy": "Never", "containers": [main]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {OPT_IN: "auto"}, **metadata},
        "spec": {"backoffLimit": 0, "template": pods},
    }


def failed(cluster: Kubernetes, made: Mapping[str, Any]) -> str:
    """Create a Job, let it fail, and return its name."""
    name = str(cluster.apply(made)["metadata"]["name"])
    cluster.end_pod(cluster.running_pod(name))
    cluster.wait(
        lambda: "Failed" in {one["type"] for one in cluster.job(name)["status"].get("conditions", [])},
        f"{name} to fail",
    )
    return name


def request(name: str, request_id: str, *, namespace: str = NAMESPACE, **extra: Any) -> Request:
    told = {"lease_count": 1, "ask_scheduler": True, "labels": {"faultline/request": request_id}, **extra}
    until = datetime.now(UTC) + timedelta(minutes=2)
    job_id = f"{namespace}/Job/{name}"
    return Request(request_id, "token", "lab", job_id, None, "submit", until, extra=told)


def refusal(hook: KubernetesScheduler, wanted: Request) -> str:
    seen = hook.inspect(wanted, begun_at=None)
    assert isinstance(seen, Settled), seen
    assert seen.result in {"refused", "already_done"}
    return seen.detail


def place(name: str) -> str:
    return named("batch/v1", "jobs", NAMESPACE, name)


def test_what_a_job_says_about_itself_leads_to_no_other_job_and_its_ties_are_not_copied(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler
) -> None:
    claims = {
        OPT_IN: "auto",
        "faultline/resubmit-of": "kube-system/Job/other",
        "faultline/request": "of-another",
        "faultline/lineage": "lab/kube-system/Job/other",
        "note": '"; exit\n$(id)\u202e',
    }
    other = kubernetes_cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tie"}})["metadata"]
    tie = {"apiVersion": "v1", "kind": "ConfigMap", "name": "tie", "uid": other["uid"]}
    made = job("claims", annotations=claims, finalizers=["example.com/keep"], ownerReferences=[tie])
    name = failed(kubernetes_cluster, made)
    wanted = request(name, "honest1", labels={"faultline/lineage": "lab/ml/Job/claims"})
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    done = hook.execute(wanted, Lease())
    assert isinstance(done, Settled)
    assert done.new_job_id == f"{NAMESPACE}/Job/{new_job_name(name, 'honest1')}"
    meta = kubernetes_cluster.job(new_job_name(name, "honest1"))["metadata"]
    assert (
        meta["annotations"]
        | {
            "faultline/resubmit-of": f"{NAMESPACE}/Job/claims",
            "faultline/request": "honest1",
            "faultline/lineage": "lab/ml/Job/claims",
            "note": claims["note"],
        }
        == meta["annotations"]
    )
    assert not {"finalizers", "ownerReferences"} & set(meta)

    # A finalizer keeps a deleted Job readable; what its owner deleted is not started again.
    kubernetes_cluster.api.delete(place(name), {"propagationPolicy": "Background"})
    assert "being deleted" in refusal(hook, request(name, "honest2"))
    patch(kubernetes_cluster.kubeconfig, place(name), {"metadata": {"finalizers": None}})


def test_a_job_prepared_under_the_new_name_is_not_taken_for_the_hooks_own(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler
) -> None:
    name = failed(kubernetes_cluster, job("prepared"))
    forged = job(new_job_name(name, "forged1"), annotations={"faultline/request": "forged1"})
    kubernetes_cluster.apply(forged)
    assert "another program or person created" in refusal(hook, request(name, "forged1"))
    # A hook that lost its journal after the creation finds its own Job by the second lease.
    again = hook.inspect(request(name, "forged1", lease_count=2), begun_at=None)
    assert isinstance(again, Settled)
    assert again.result == "done"


@pytest.mark.parametrize(("label", "annotation"), [("never", "auto"), ("auto", "never"), ("advise", "auto")])
def test_of_two_wishes_the_more_cautious_counts(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler, label: str, annotation: str
) -> None:
    made = job(f"two-{label}-{annotation}", labels={OPT_IN: label}, annotations={OPT_IN: annotation})
    assert OPT_IN in refusal(hook, request(failed(kubernetes_cluster, made), "wish1"))


def test_an_owner_who_withdraws_the_consent_after_the_failure_is_obeyed_at_once(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler
) -> None:
    name = failed(kubernetes_cluster, job("withdrawn"))
    wanted = request(name, "withdrawn1")
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    patch(kubernetes_cluster.kubeconfig, place(name), {"metadata": {"annotations": {OPT_IN: "never"}}})
    outcome = hook.execute(wanted, Lease())
    assert isinstance(outcome, Settled)
    assert outcome.result == "refused"
    assert new_job_name(name, "withdrawn1") not in kubernetes_cluster.jobs()


def test_another_job_under_the_name_of_the_failed_one_and_an_owned_job_are_left_alone(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler
) -> None:
    long_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    name = failed(kubernetes_cluster, job("again"))
    assert "created again" in refusal(hook, request(name, "again1", ended_before=long_ago))
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "llm", "uid": "1", "controller": True}
    patch(kubernetes_cluster.kubeconfig, place(name), {"metadata": {"ownerReferences": [owner]}})
    assert "controls the Job" in refusal(hook, request(name, "again2"))


@pytest.mark.parametrize(
    ("namespace", "name"),
    [(NAMESPACE, ".."), (NAMESPACE, "."), ("..", "again"), (NAMESPACE, "a?watch=1"), ("*", "a"), (NAMESPACE, "A\n")],
)
def test_a_name_is_no_path(hook: KubernetesScheduler, namespace: str, name: str) -> None:
    assert "not a Kubernetes Job" in refusal(hook, request(name, "path1", namespace=namespace))


def test_a_job_too_large_to_be_marked_is_refused_by_the_cluster_and_nothing_is_left(
    kubernetes_cluster: Kubernetes, hook: KubernetesScheduler
) -> None:
    filled = {OPT_IN: "auto", "fill": "x" * (256 * 1024 - 120)}
    name = failed(kubernetes_cluster, job("filled", annotations=filled))
    wanted = request(name, "filled1")
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    outcome = hook.execute(wanted, Lease())
    assert isinstance(outcome, Settled)
    assert (outcome.result, "annotations" in outcome.detail) == ("refused", True)
