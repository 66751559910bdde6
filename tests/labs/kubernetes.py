"""A real Kubernetes control plane, private to the test run: etcd, API server, controllers, scheduler, on loopback.

KWOK replaces the kubelets, one process for each node: pods are scheduled and become ready, but no container runs. A
test ends a pod's containers itself (`end_pod`), and loses a node by ending its process. Logs take the real path from
the API server on: it requests them from the node's server as from a kubelet, and that server reads what the test
wrote (`write_log`).
Everything is built once by install-kubernetes-lab; the data of a run is deleted afterwards.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.errors import FaultlineError
from service.kubernetes.api import KubernetesApi, connect
from service.kubernetes.paths import collection, named
from tests.labs.kubernetes_tools import installed, patch
from tests.labs.need import need
from tests.labs.ports import free_ports

START_SECONDS = 300
RUNNING_SECONDS = 240  # other labs may share the cores
NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
GPUS = 8
NAMESPACE = "ml"
# Containers with these names have logs, which `write_log` writes.
LOGGED = ("main", "trainer", "loader")
# Seconds without a heartbeat until a node counts as lost (a busy machine loses no healthy node), then until eviction.
SILENT_SECONDS, STAY_SECONDS = 40, 2

CLUSTER_WIDE = frozenset({"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "PersistentVolume"})
CLUSTER_LOGS = """\
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: logs
spec:
  logs:
"""


@dataclass
class Kubernetes:
    """The running cluster. `kubeconfig` is the administrator's."""

    folder: Path
    programs: Path
    ports: Sequence[int]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    api: KubernetesApi = field(init=False, repr=False)

    @property
    def kubeconfig(self) -> Path:
        """The path of the administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports[0]}"

    @property
    def certificate(self) -> Path:
        """The certificate of all servers of the lab, which clients have to trust."""
        return self.folder / "certificate.pem"

    @property
    def key(self) -> Path:
        """The key of the certificate, which also signs the tokens of accounts."""
        return self.folder / "key.pem"

    def start(self) -> None:
        """Start everything and wait until pods can run."""
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
        self.write_kubeconfig(self.kubeconfig, token)
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab"]
        names = ["-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", str(self.key), "-out", str(self.certificate)]
        subprocess.run([*make, *names, *files], check=True, capture_output=True, timeout=60)
        self.api = connect(self.kubeconfig)
        self.start_etcd()
        self.start_api_server()
        self.run("controllers", *self._controllers())
        self.run("scheduler", *self._program("scheduler"), "--leader-elect=false", "--secure-port=0")
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for number, node in enumerate(NODES):
            self.add_node(node, number)
        self.wait(lambda: all(self.ready(node) for node in NODES), "the nodes to be ready")
        account = named("v1", "serviceaccounts", NAMESPACE, "default")
        self.wait(lambda: bool(self.api.get(account)), "the namespace to be usable")

    def start_etcd(self) -> None:
        """Start etcd."""
        client, peer = (f"http://127.0.0.1:{port}" for port in self.ports[1:3])
        listen = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        cluster = ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        # The data is deleted after the test, so it need not be synced to disk.
        self.run("etcd", "etcd", "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", *listen, *cluster)

    def start_api_server(self) -> None:
        """Start the API server; returns once it is ready."""
        keys = [f"--service-account-{use}-file={self.key}" for use in ("key", "signing-key")]
        self.run(
            "apiserver",
            str(self.programs / "bin" / "controlplane"),
            "apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.ports[1]}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.ports[0]}",
            f"--tls-cert-file={self.certificate}",
            f"--tls-private-key-file={self.key}",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://lab",
            # KWOK's watches begin at version 0, which the server takes as a request for a list within the watch. With
            # an etcd before 3.4.31 it refuses that, and KWOK would only list, with pauses of up to a minute.
            "--feature-gates=WatchList=false",
            *keys,
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--default-unreachable-toleration-seconds={STAY_SECONDS}",
            f"--default-not-ready-toleration-seconds={STAY_SECONDS}",
        )
        ask = {"keep": 10, "read_at_most": 1000, "within_s": 5}
        self.wait(lambda: self.api.text_tail("/readyz", {}, **ask) == "ok", "the API server")

    def _program(self, part: str) -> list[str]:
        return [str(self.programs / "bin" / "controlplane"), part, f"--kubeconfig={self.kubeconfig}"]

    def _controllers(self) -> list[str]:
        return [
            *self._program("controllers"),
            f"--service-account-private-key-file={self.key}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--secure-port=0",
            "--node-monitor-period=1s",
            f"--node-monitor-grace-period={SILENT_SECONDS}s",
        ]

    def add_node(self, node: str, number: int) -> None:
        """Start a node and the process that replaces its kubelet."""
        resources = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
        labels = {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}
        status = {"allocatable": resources, "capacity": resources}
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}, "status": status})
        port = self.ports[3 + number]
        stages = (self.programs / "stages.yaml").read_text()
        logs = "".join(
            f"  - containers: [{name}]\n    logsFile: {self.folder}/logs/{name}.log\n    follow: false\n"
            for name in LOGGED
        )
        config = self.folder / f"{node}.yaml"
        config.write_text(stages + CLUSTER_LOGS + logs)
        for name in LOGGED:
            self.write_log(name, "")
        self.run(
            f"kubelet-{node}",
            str(self.programs / "bin" / "kwok"),
            f"--kubeconfig={self.kubeconfig}",
            f"--config={config}",
            f"--manage-single-node={node}",
            "--node-lease-duration-seconds=8",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={self.certificate}",
            f"--tls-private-key-file={self.key}",
        )

    def write_log(self, container: str, text: str) -> None:
        """Write the log of every container with this name (one of LOGGED), in the format of a container runtime."""
        folder = self.folder / "logs"
        folder.mkdir(exist_ok=True)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        lines = "".join(f"{now} stderr F {line}\n" for line in text.splitlines())
        (folder / f"{container}.log").write_text(lines)

    def apply(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, strictly: a field that the API does not know is an error."""
        namespaced = obj["kind"] not in CLUSTER_WIDE
        namespace = obj["metadata"].get("namespace", NAMESPACE) if namespaced else None
        place = collection(obj["apiVersion"], plural(obj["kind"]), namespace)
        return self.api.create(place, obj, {"fieldValidation": "Strict"})

    def job(self, name: str) -> dict[str, Any]:
        """Return one Job of NAMESPACE."""
        return self.api.get(named("batch/v1", "jobs", NAMESPACE, name))

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return every Job of NAMESPACE by name."""
        return {
            one["metadata"]["name"]: one for one in self.api.get(collection("batch/v1", "jobs", NAMESPACE))["items"]
        }

    def pods(self, job: str) -> list[dict[str, Any]]:
        """Return a Job's pods, oldest first."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        found = self.api.get(collection("v1", "pods", NAMESPACE), query)["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def events(self, about: str) -> list[dict[str, Any]]:
        """Return the Events of NAMESPACE about an object of that name."""
        query = {"fieldSelector": f"involvedObject.name={about}"}
        return list(self.api.get(collection("v1", "events", NAMESPACE), query)["items"])

    def running_pod(self, job: str) -> dict[str, Any]:
        """Return the running pod of the Job, once there is one."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            found[:] = [pod for pod in self.pods(job) if pod["status"].get("phase") == "Running"]
            return bool(found)

        self.wait(there, f"a running pod of {job}", seconds=RUNNING_SECONDS)
        return found[0]

    def end_pod(self, pod: Mapping[str, Any], code: int = 1, reason: str = "Error", message: str | None = None) -> None:
        """End a pod's containers, as its kubelet would report."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ended = {"exitCode": code, "reason": reason, "startedAt": pod["status"]["startTime"], "finishedAt": now}
        statuses = [
            {"name": one["name"], "image": one["image"], "imageID": "", "ready": False, "restartCount": 0}
            | {"state": {"terminated": ended | ({"message": message} if message else {})}}
            for one in pod["spec"]["containers"]
        ]
        status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": statuses}
        place = named("v1", "pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        patch(self.kubeconfig, f"{place}/status", {"status": status})

    def ready(self, node: str) -> bool:
        """Return whether a node is ready and not tainted."""
        found = self.api.get(named("v1", "nodes", None, node))
        conditions = {one["type"]: one["status"] for one in found["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not found["spec"].get("taints")

    def lose_node(self, node: str) -> None:
        """Stop the node's kubelet abruptly."""
        self.end(f"kubelet-{node}", signal.SIGKILL)

    def give_up_node(self, node: str) -> None:
        """Mark a node as out of service, as an administrator would; returns once its pods are deleted."""
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        place = named("v1", "nodes", None, node)

        def let_go() -> bool:
            taints = self.api.get(place)["spec"].get("taints", [])
            if taint["key"] not in {one["key"] for one in taints}:  # a controller may overwrite our change
                patch(self.kubeconfig, place, {"spec": {"taints": [*taints, taint]}})
            pods = self.api.get(collection("v1", "pods", NAMESPACE), {"fieldSelector": f"spec.nodeName={node}"})
            return not pods["items"]

        self.wait(let_go, f"the pods of {node} to be let go", seconds=RUNNING_SECONDS)

    def account(self, name: str, *objects: Mapping[str, Any]) -> Path:
        """Return a kubeconfig for a service account of NAMESPACE, after applying `objects` (its permissions)."""
        for one in objects:
            self.apply(one)
        place = named("v1", "serviceaccounts", NAMESPACE, name)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.api.create(f"{place}/token", body)["status"]["token"]
        path = self.folder / f"{name}.kubeconfig"
        self.write_kubeconfig(path, token)
        return path

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """Write a kubeconfig of this cluster for the holder of `token`."""
        cluster = {"server": self.server, "certificate-authority": str(self.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "user"}}],
            "current-context": "lab",
        }
        path.write_text(json.dumps(config))

    def run(self, name: str, *command: str) -> None:
        """Start a program that must not outlive the tests, however they end."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            )

    def end(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End one program."""
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(30)

    def restart_api_server(self) -> None:
        """Kill it and start it again on the same data; returns once all running nodes are connected to it again."""
        self.end("apiserver")
        self.start_api_server()
        # A pod that is bound to a node which is still silent could be evicted before it ever runs. The first renewals
        # of a lease prove nothing: they may come from what the node remembers.
        renewals = {name.removeprefix("kubelet-"): set[str]() for name in self.processes if name.startswith("kubelet-")}

        def connected() -> bool:
            for node, seen in renewals.items():
                lease = self.api.get(named("coordination.k8s.io/v1", "leases", "kube-node-lease", node))
                seen.add(lease["spec"]["renewTime"])
            return all(len(seen) > 2 and self.ready(node) for node, seen in renewals.items())

        self.wait(connected, "the nodes to be connected again", seconds=RUNNING_SECONDS)

    def compact(self) -> None:
        """Compact the whole history of etcd: a watch from an older resourceVersion gets 410 Gone."""
        endpoint = f"http://127.0.0.1:{self.ports[1]}/v3/kv"

        def ask(what: str, body: Mapping[str, Any]) -> Any:
            with urllib.request.urlopen(f"{endpoint}/{what}", json.dumps(body).encode(), timeout=30) as answer:
                return json.loads(answer.read())

        revision = ask("range", {"key": "AA=="})["header"]["revision"]
        ask("compaction", {"revision": revision, "physical": True})

    def wait(self, until: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
        """Wait for a condition; errors of the cluster in the meantime count as not fulfilled."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(FaultlineError):
                if until():
                    return
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} has ended while waiting for {what}: {self.output_text(name)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {seconds:g} s in vain for {what}")
            time.sleep(0.1)

    def output_text(self, name: str) -> str:
        """Return the end of a program's log."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """End all programs."""
        if hasattr(self, "api"):
            self.api.close()
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(30)


def plural(kind: str) -> str:
    """Return the plural of a kind as in API paths."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


@contextmanager
def cluster() -> Iterator[Kubernetes]:
    """Yield a cluster for the duration of the block."""
    need("setpriv", "openssl", "etcd")
    programs = installed()
    folder = Path(tempfile.mkdtemp(prefix="faultline-kubernetes-"))
    made = Kubernetes(folder, programs, free_ports(3 + len(NODES)))
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """`python -m tests.labs.kubernetes`: run a cluster until interrupted; its data is then deleted."""
    with suppress(KeyboardInterrupt), cluster() as made:
        print(f"Kubernetes is at {made.server}, kubectl --kubeconfig {made.kubeconfig}; Ctrl-C ends it", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
