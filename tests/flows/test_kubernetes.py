"""A real Kubernetes control plane with service, watcher and hook: Jobs end, and the consequences are correct.

Real: etcd, API server, Job controller, scheduler, node life cycle, taints and pod garbage collection, the chart's RBAC
rules, and the path of a log from a node's server through the API server to the verdict. Not real: no container runs,
so the test reports the end of a container in place of its kubelet, and writes the lines of its log.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.kubernetes.paths import named
from service.settings import default_model_dir
from tests.labs import kubernetes
from tests.labs.kubernetes import NAMESPACE, Kubernetes
from tests.labs.kubernetes_tools import patch
from tests.labs.need import missing

pytestmark = pytest.mark.xdist_group("kubernetes")  # one control plane at a time fits a small machine

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "kubernetes" / "faultline" / "files"
CLUSTER = "lab"
PATIENCE_S = 600  # of waits that end as soon as it has happened
POLICY = 'version = "quick"\n\n[backoff]\nbase_s = 1\n'
OUT_OF_MEMORY = "loading shards\nstep 1 loss 2.31\nstep 2 loss 2.29\n"
BAD_DEVICE = """\
step 40 loss 1.91
Traceback (most recent call last):
  File "/app/train.py", line 88, in main
    loss.backward()
torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered
"""


@dataclass
class Site:
    """All running processes and their clients."""

    cluster: Kubernetes
    folder: Path
    environ: Mapping[str, str]
    url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "service", *arguments],
                env=self.environ, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def serve(self) -> None:
        self.start("serve", "serve", "--port", "0")
        pattern = re.compile(r"Faultline is at (http://\S+)")
        self.wait(lambda: pattern.search(self.output_text("serve")) is not None, "the service")
        found = pattern.search(self.output_text("serve"))
        assert found is not None
        self.url = found[1]

    def watch(self) -> None:
        kubeconfig = str(self.folder / "watch.kubeconfig")
        state = str(self.folder / "watch.json")
        where = ["--cluster", CLUSTER, "--kubeconfig", kubeconfig, "--state", state, "--url", self.url]
        self.start("watch", "watch", "kubernetes", *where)

    def pods_read_up_to(self) -> str:
        """The version of the pods that the watcher has saved; it saves from time to time as changes come."""
        change = {"metadata": {"annotations": {"changed-at": str(time.monotonic())}}}
        patch(self.cluster.kubeconfig, named("batch/v1", "jobs", NAMESPACE, "memory"), change)
        return str(json.loads((self.folder / "watch.json").read_text())["versions"]["pods|*"])

    def hook(self) -> None:
        where = ["--cluster", CLUSTER, "--kubeconfig", str(self.folder / "hook.kubeconfig"), "--url", self.url]
        self.start("hook", "hook", "kubernetes", *where, "--state-dir", str(self.folder / "hook"), "--poll-s", "0.5")

    def end(self, name: str, how: signal.Signals) -> int:
        process = self.processes.pop(name)
        process.send_signal(how)
        return process.wait(60)

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", content, headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())

    def attempts(self, job: str) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = self.ask(f"/jobs/{CLUSTER}/{NAMESPACE}/Job/{job}")["attempts"]
        except urllib.error.HTTPError:
            return []
        return found

    def failure(self, job: str) -> dict[str, Any]:
        [number] = {one["failure_id"] for one in self.attempts(job) if one["failure_id"] is not None}
        found: dict[str, Any] = self.ask(f"/failures/{number}")
        return found

    def requests(self, job: str) -> list[dict[str, Any]]:
        job_id = f"{NAMESPACE}/Job/{job}"
        return [one for one in self.ask("/resubmissions?limit=500")["items"] if one["job_id"] == job_id]

    def wait(self, until: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.output_texts()}"
            ended = [name for name, one in self.processes.items() if one.poll() is not None]
            assert not ended, f"{ended} ended, waiting for {what}\n{self.output_texts()}"
            time.sleep(0.3)

    def output_texts(self) -> str:
        return "\n".join(f"{name}: {self.output_text(name)[-1500:]}" for name in self.processes)

    def output_text(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(30)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not (default_model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")} | {
        "FAULTLINE_DATABASE_URL": f"sqlite:///{tmp_path}/faultline.sqlite3",
        "FAULTLINE_POLICY_FILE": str(policy),
        "PYTHONPATH": str(ROOT),
    }
    with kubernetes.cluster() as cluster:
        made = Site(cluster, tmp_path, environ)
        try:
            upgrade = [sys.executable, "-m", "service", "db", "upgrade"]
            subprocess.run(upgrade, env=environ, cwd=tmp_path, check=True, capture_output=True, timeout=60)
            accounts(cluster, tmp_path)
            made.serve()
            made.watch()
            made.hook()
            yield made
        finally:
            made.close()


def accounts(cluster: Kubernetes, folder: Path) -> None:
    """The watcher and the hook may do what the chart permits, and no more."""
    for name, files in {"watch": ["watch-rules.yaml", "node-rules.yaml"], "hook": ["hook-rules.yaml"]}.items():
        rules = [rule for file in files for rule in yaml.safe_load((RULES / file).read_text())]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        group = "rbac.authorization.k8s.io/v1"
        path = cluster.account(
            name,
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
            {"apiVersion": group, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
            {
                "apiVersion": group,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": role,
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
            },
        )
        path.rename(folder / f"{name}.kubeconfig")


def job(name: str, container: str, **spec: Any) -> dict[str, Any]:
    resources = {"nvidia.com/gpu": "8", "memory": "8Gi"}
    main = {"name": container, "image": "reg/train:7", "resources": {"limits": resources}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"faultline/resubmit": "auto"}},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [main]}},
            **spec,
        },
    }


@pytest.mark.lab
def test_memory_is_advised_a_lost_node_is_left_and_a_job_with_tries_left_is_left_alone(site: Site) -> None:
    cluster = site.cluster
    for container, text in {"trainer": OUT_OF_MEMORY, "loader": BAD_DEVICE}.items():
        cluster.write_log(container, text)
    cluster.apply(job("lost", "main"))
    lost_on = cluster.running_pod("lost")["spec"]["nodeName"]
    cluster.apply(job("memory", "trainer"))
    cluster.apply(job("tries-left", "loader", backoffLimit=3))
    cluster.end_pod(cluster.running_pod("memory"), 137, "OOMKilled")
    cluster.end_pod(cluster.running_pod("tries-left"))
    cluster.lose_node(lost_on)  # the cluster needs some time to declare the node lost

    memory_is_advised(site)
    tries_left_are_left(site)

    # The cluster evicts the pod from an unresponsive node, and does not repeat an eviction that failed.
    site.wait(lambda: taken(cluster, "lost"), "the node to be lost")
    assert site.end("watch", signal.SIGKILL) == -signal.SIGKILL
    assert site.end("hook", signal.SIGKILL) == -signal.SIGKILL
    before = site.pods_read_up_to()
    cluster.restart_api_server()
    cluster.compact()  # the watcher's resourceVersion has expired: 410
    site.watch()
    site.wait(lambda: "everything is listed again" in site.output_text("watch"), "a new list")
    site.wait(lambda: site.pods_read_up_to() != before, "the pods to be listed")
    site.hook()
    cluster.give_up_node(lost_on)
    a_lost_node_is_left(site, lost_on)
    assert site.end("watch", signal.SIGTERM) == 0
    assert site.end("hook", signal.SIGTERM) == 0
    assert set(cluster.jobs()) == {"lost", "memory", "tries-left", *(made_of(site, "lost"))}
    assert not site.ask("/dead-letters")["items"]


def taken(cluster: Kubernetes, job: str) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods(job))


def memory_is_advised(site: Site) -> None:
    site.wait(lambda: len(site.attempts("memory")) == 2, "the Job out of memory")  # its pod and the Job itself
    assert [one["status"] for one in site.attempts("memory")] == ["out_of_memory"] * 2
    found = site.failure("memory")
    verdict = found["verdict"]
    assert verdict["side"] == "user", (verdict["context"], verdict["evidence"])
    assert (verdict["resubmit"], verdict["changes"]) == (False, {"memory_bytes": 12 << 30})
    assert "memory" in verdict["mitigations"][0]["text"]
    assert "step 2 loss 2.29" in json.dumps(verdict["evidence"])  # read through the API server
    assert not verdict["missing"]
    assert not [one for one in site.requests("memory") if one["state"] != "shadow"]


def tries_left_are_left(site: Site) -> None:
    site.wait(lambda: len(site.attempts("tries-left")) == 1, "the first try")
    found = site.failure("tries-left")
    assert (found["verdict"]["cause"], found["verdict"]["mode"]) == ("HW.GPU.1", "advise")
    assert any("own retrier" in reason and "advice only" in reason for reason in found["verdict"]["reasons"])
    assert not site.requests("tries-left")
    # A person requests it anyway: the hook inspects the Job and leaves it unchanged.
    site.ask(f"/failures/{found['failure']['id']}:resubmit", {})
    site.wait(lambda: [one["state"] for one in site.requests("tries-left")] == ["refused"], "the hook's refusal")
    [refused] = site.requests("tries-left")
    assert "backoffLimit" in refused["detail"]


def made_of(site: Site, job: str) -> list[str]:
    return [one["new_job_id"].rpartition("/")[2] for one in site.requests(job) if one["new_job_id"]]


def a_lost_node_is_left(site: Site, lost_on: str) -> None:
    cluster = site.cluster
    site.wait(lambda: len(site.attempts("lost")) == 2, "the Job lost with its node")
    assert [one["status"] for one in site.attempts("lost")] == ["node_fail"] * 2
    verdict = site.failure("lost")["verdict"]
    assert verdict["cause"].startswith("HW.NODE")
    assert verdict["action"]["exclude_nodes"] == [lost_on]
    assert any("does not answer" in one or "is deleted" in one for one in verdict["missing"])  # its log is lost too
    site.wait(lambda: bool(made_of(site, "lost")), "the new Job")
    [new] = made_of(site, "lost")
    annotations = cluster.job(new)["metadata"]["annotations"]
    assert annotations["faultline/request"] == site.requests("lost")[0]["request_id"]
    assert annotations["faultline/resubmit-of"] == f"{NAMESPACE}/Job/lost"
    assert [one["reason"] for one in cluster.events("lost") if one["source"] == {"component": "faultline-hook"}] == [
        "Resubmitted"
    ]
    pod = cluster.running_pod(new)
    assert pod["spec"]["nodeName"] != lost_on
    cluster.end_pod(pod, 0)
    site.wait(lambda: site.requests("lost")[0]["outcome"] == "succeeded", "the outcome")
