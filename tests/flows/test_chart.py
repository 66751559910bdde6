"""The Helm chart: its values are validated, its objects are valid, and a real API server accepts and runs them.

No container runs in the lab. The tests show that every object is accepted (strictly, with Pod Security "restricted"
enforced), that the migration runs first, and that pods are scheduled, get their volumes and become ready.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.cli.commands import parser_for
from service.kubernetes.paths import collection, named
from tests.labs.kubernetes import Kubernetes
from tests.labs.kubernetes_tools import installed

pytestmark = pytest.mark.xdist_group("kubernetes")  # one control plane at a time fits a small machine

CHART = Path(__file__).parents[2] / "deploy" / "kubernetes" / "faultline"
MANIFESTS = CHART.parents[1] / "hooks" / "kubernetes.yaml"
SPACE = "faultline"
VERSION = "1.36.3"
DIGEST = f"sha256:{'0a' * 32}"
EVERYTHING = (
    "database.existingSecret=faultline-database",
    "kafka.bootstrapServers={kafka-0:9092,kafka-1:9092}",
    "hook.enabled=true",
    "hook.tokenSecret=faultline-hook",
    "watch.tokenSecret=faultline-watch",
    "web.ingress.enabled=true",
    "web.ingress.tlsSecret=faultline-tls",
)
VARIANTS: Mapping[str, Sequence[str]] = {
    "least": ("database.existingSecret=faultline-database",),
    "everything": EVERYTHING,
    "few namespaces, by topic": (
        *EVERYTHING,
        "watch.namespaces={ml,vision}",
        "hook.namespaces={ml}",
        "watch.via=topic",
        "kafka.existingSecret=kafka",
        "kafka.saslMechanism=PLAIN",
        "watch.persistence.enabled=false",
        "logStorage.url=s3://logs/site-a",
        "logStorage.endpoint=https://s3.example:9000",
        "logStorage.existingSecret=log-storage",
        "networkPolicy.egress[0].ports[0].port=5432",
    ),
}


def helm(*words: str, values: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    program = installed() / "bin" / "helm"
    given = [part for value in values for part in ("--set", value)]
    return subprocess.run([program, *words, *given], capture_output=True, text=True, check=False, timeout=240)


def rendered(values: Sequence[str]) -> list[dict[str, Any]]:
    done = helm("template", "site", str(CHART), "--namespace", SPACE, "--kube-version", VERSION, values=values)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def pod_specs(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects if "template" in one["spec"]}


@pytest.mark.lab
def test_the_chart_installs_the_alert_rules_where_they_are_wanted() -> None:
    assert not [one for one in rendered(EVERYTHING) if one["kind"] == "PrometheusRule"]
    wanted = (*EVERYTHING, "alerts.enabled=true", "alerts.labels.release=prometheus")
    [rules] = [one for one in rendered(wanted) if one["kind"] == "PrometheusRule"]
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert rules["spec"] == yaml.safe_load(
        (CHART.parents[1] / "prometheus" / "alerts.yaml").read_text(encoding="utf-8")
    )


@pytest.mark.lab
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_pod_runs_as_an_unprivileged_user_without_write_access(variant: str) -> None:
    done = helm("lint", str(CHART), "--kube-version", VERSION, "--strict", values=VARIANTS[variant])
    assert done.returncode == 0, done.stdout
    objects = [one for one in rendered(VARIANTS[variant]) if "spec" in one]
    for name, pod in pod_specs(objects).items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["enableServiceLinks"] is False, name  # FAULTLINE_PORT=tcp://... would stop the service
        assert pod["automountServiceAccountToken"] is name.endswith(("-watch", "-hook"))
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert {"requests", "limits"} <= set(container["resources"])
            assert not any(entry["name"].endswith("_PASSWORD") for entry in container.get("env") or ())


@pytest.mark.lab
def test_rights_are_as_small_as_they_can_be() -> None:
    for variant in VARIANTS.values():
        for one in rendered(variant):
            if one["kind"] not in {"Role", "ClusterRole"}:
                continue
            verbs = {verb for rule in one["rules"] for verb in rule["verbs"]}
            may = {"get", "list", "watch"} if "-watch" in one["metadata"]["name"] else {"get", "list", "create"}
            assert verbs <= may, one["metadata"]["name"]
            assert "secrets" not in {resource for rule in one["rules"] for resource in rule["resources"]}


@pytest.mark.lab
def test_a_digest_replaces_the_tag_in_every_pod() -> None:
    values = (*EVERYTHING, "image.repository=registry.example/faultline", f"image.digest={DIGEST}")
    pods = pod_specs([one for one in rendered(values) if "spec" in one])
    images = {container["image"] for pod in pods.values() for container in pod["containers"]}
    assert images == {f"registry.example/faultline@{DIGEST}"}


@pytest.mark.lab
def test_each_pod_has_a_network_policy_that_denies_what_it_does_not_need() -> None:
    objects = rendered((*EVERYTHING, "networkPolicy.egress[0].ports[0].port=5432"))
    policies = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy"]
    for one in objects:
        if "template" not in one.get("spec", {}):
            continue
        labels = one["spec"]["template"]["metadata"]["labels"]
        [policy] = [each for each in policies if each["podSelector"]["matchLabels"].items() <= labels.items()]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
        assert opened in ([], [8080], [9100])
        assert [port["port"] for rule in policy["egress"] for port in rule["ports"]] == [53, 53, 5432]


@pytest.mark.lab
@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1)])
def test_a_single_web_pod_stops_no_drain_of_its_node(replicas: int, budgets: int) -> None:
    objects = rendered((*EVERYTHING, f"web.replicas={replicas}"))
    found = [
        one for one in objects if one["kind"] == "PodDisruptionBudget" and one["metadata"]["name"].endswith("-web")
    ]
    assert len(found) == budgets


@pytest.mark.lab
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"memory": "1024Mi"}}),
        (("worker.processes=4",), {"requests": {"cpu": "4", "memory": "2048Mi"}, "limits": {"memory": "2944Mi"}}),
        (
            ("worker.processes=4", "worker.resources.limits.memory=3Gi"),
            {"requests": {"cpu": "4", "memory": "2048Mi"}, "limits": {"memory": "3Gi"}},
        ),
    ],
)
def test_the_resources_of_a_worker_grow_with_its_processes(
    values: Sequence[str], expected: Mapping[str, Mapping[str, str]]
) -> None:
    pods = pod_specs([one for one in rendered((*EVERYTHING, *values)) if "spec" in one])
    [worker] = next(pod["containers"] for name, pod in pods.items() if name.endswith("-worker"))
    assert worker["resources"] == expected


@pytest.mark.lab
def test_the_metrics_of_all_processes_of_a_worker_can_be_read() -> None:
    """Most alerts depend on them."""
    objects = rendered((*EVERYTHING, "worker.processes=3"))
    [policy] = [
        one for one in objects if one["metadata"]["name"].endswith("-worker") and one["kind"] == "NetworkPolicy"
    ]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": 9100, "endPort": 9102, "protocol": "TCP"}]}]
    [worker] = [one for one in objects if one["metadata"]["name"].endswith("-worker") and one["kind"] == "StatefulSet"]
    assert worker["spec"]["template"]["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    [container] = worker["spec"]["template"]["spec"]["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [9100, 9101, 9102]
    given = container["args"]
    arguments = parser_for("worker").parse_args(given)
    assert (arguments.metrics_address, arguments.metrics_port, arguments.processes) == ("0.0.0.0", 9100, 3)


@pytest.mark.lab
def test_a_watcher_that_writes_to_topics_has_the_settings_and_files_for_them() -> None:
    values = (
        *VARIANTS["few namespaces, by topic"],
        "settings.FAULTLINE_KAFKA_SSL_CAFILE=/ca/ca.pem",
        "settings.FAULTLINE_NODE_EVENT_TOPIC=nodes",
        "settings.FAULTLINE_LOG_ROOTS=/logs",
        "extraVolumes[0].name=ca",
        "extraVolumes[0].configMap.name=ca",
        "extraVolumeMounts[0].name=ca",
        "extraVolumeMounts[0].mountPath=/ca",
    )
    watch = pod_specs([one for one in rendered(values) if "spec" in one])["site-faultline-watch"]
    [container] = watch["containers"]
    settings = {one["name"]: one["value"] for one in container["env"]}
    assert settings["FAULTLINE_KAFKA_SSL_CAFILE"] == "/ca/ca.pem"
    assert settings["FAULTLINE_NODE_EVENT_TOPIC"] == "nodes"
    assert "FAULTLINE_LOG_ROOTS" not in settings
    mounted = {one["name"] for one in container["volumeMounts"]} - {"state"}
    assert "ca" in mounted
    assert mounted <= {one["name"] for one in watch["volumes"]}


def test_every_base_image_can_be_given_by_its_digest() -> None:
    deploy = CHART.parents[1]
    dockerfile = (deploy / "Dockerfile").read_text()
    assert {line.split()[1] for line in dockerfile.splitlines() if line.startswith("FROM ")} == {"${PYTHON_IMAGE}"}
    services = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    images = {one["image"] for one in services.values() if "build" not in one}
    assert all(image.startswith("${") for image in images)


@pytest.mark.lab
def test_the_manifests_without_helm_are_those_of_the_chart() -> None:
    kept = MANIFESTS.read_text().splitlines()
    command = " ".join(line.removeprefix("#").strip(" \\") for line in kept[1:3]).split("helm ", 1)[1].split()
    chart = str(CHART) if "deploy/kubernetes/faultline" in command else ""
    words = [chart if word == "deploy/kubernetes/faultline" else word for word in command]
    done = helm(*words, "--kube-version", VERSION)
    assert done.returncode == 0, done.stderr
    made = [line for line in done.stdout.splitlines() if "managed-by" not in line and "helm.sh/chart" not in line]
    assert [line for line in kept if not line.startswith("#")] == [line for line in made if not line.startswith("#")]


@pytest.mark.lab
@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("database.existingSecret=", "existingSecret"),
        ("web.replica=3", "replica"),
        ("worker.processes=0", "processes"),
        ("watch.namespaces={Not A Name}", "namespaces"),
        ("settings.DATABASE_URL=x", "DATABASE_URL"),
        ("image.digest=latest", "digest"),
    ],
)
def test_a_wrong_value_is_named(value: str, field: str) -> None:
    values = ("database.existingSecret=db", value)
    done = helm("template", "site", str(CHART), "--kube-version", VERSION, values=values)
    assert done.returncode != 0
    assert field in done.stderr


@pytest.mark.lab
def test_the_objects_are_valid_by_the_api_s_own_schemas(kubernetes_cluster: Kubernetes, tmp_path: Path) -> None:
    schemas(kubernetes_cluster, tmp_path)
    program = installed() / "bin" / "kubeconform"
    location = f"{tmp_path}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    text = yaml.safe_dump_all(one for variant in VARIANTS.values() for one in rendered(variant))
    done = subprocess.run(
        [program, "-summary", "-output", "json", "-schema-location", location],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["summary"]["skipped"] == 0
    broken = [one | {"spec": {"podSelector": []}} for one in rendered(EVERYTHING) if one["kind"] == "NetworkPolicy"]
    done = subprocess.run(
        [program, "-schema-location", location],
        input=yaml.safe_dump_all(broken), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0


def schemas(cluster: Kubernetes, folder: Path) -> None:
    """Write JSON Schemas with kubeconform's names, from the API server's description; unknown fields are errors."""
    definitions = cluster.api.get("/openapi/v2")["definitions"]
    for one in definitions.values():
        if "properties" in one:
            one.setdefault("additionalProperties", False)
        for name, part in one.get("properties", {}).items():
            if part.get("format") == "int-or-string" or "IntOrString" in part.get("$ref", ""):
                one["properties"][name] = {"type": ["string", "integer"]}
    for name, one in definitions.items():
        for kind in one.get("x-kubernetes-group-version-kind", ()):
            parts = [kind["kind"], kind["group"].partition(".")[0], kind["version"]]
            file = folder / ("-".join(part for part in parts if part).lower() + ".json")
            if file.name.partition("-")[0] in KINDS:
                file.write_text(json.dumps({"$ref": f"#/definitions/{name}", "definitions": definitions}))


KINDS = frozenset({
    "deployment", "statefulset", "job", "service", "serviceaccount", "ingress", "networkpolicy", "poddisruptionbudget",
    "role", "rolebinding", "clusterrole", "clusterrolebinding",
})  # fmt: skip


@pytest.mark.lab
def test_it_installs_on_a_cluster_that_admits_unprivileged_pods_only(
    kubernetes_cluster: Kubernetes, tmp_path: Path
) -> None:
    cluster = kubernetes_cluster
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}})
    for name in ("faultline-database", "faultline-hook", "faultline-watch"):
        secret = {"metadata": {"name": name, "namespace": SPACE}, "stringData": {"database_url": "x", "token": "x"}}
        cluster.apply({"apiVersion": "v1", "kind": "Secret", **secret})
    for number in range(2):
        cluster.apply(volume(f"state-{number}"))
    command = ["install", "site", str(CHART), "--namespace", SPACE, "--kubeconfig", str(cluster.kubeconfig)]
    given = [part for value in EVERYTHING for part in ("--set", value)]
    program = str(installed() / "bin" / "helm")
    log = tmp_path / "helm.log"
    with log.open("wb") as out:
        running = subprocess.Popen([program, *command, "--wait", "--timeout", "150s", *given], stdout=out, stderr=out)
    try:
        end_migration(cluster)
        assert running.wait(200) == 0, log.read_text()
    finally:
        running.kill()
        running.wait(30)
    pods = cluster.api.get(collection("v1", "pods", SPACE))["items"]
    parts = sorted(pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods)
    assert parts == ["hook", "migrations", "watch", "web", "web", "worker"]
    claims = cluster.api.get(collection("v1", "persistentvolumeclaims", SPACE))["items"]
    assert [claim["status"]["phase"] for claim in claims] == ["Bound", "Bound"]
    web = cluster.api.get(named("apps/v1", "deployments", SPACE, "site-faultline-web"))
    assert web["status"]["readyReplicas"] == 2
    [pod] = re.findall(r"--overrides='(.*)'", log.read_text())  # of the command that creates the first token
    metadata = {"name": "faultline-token", "namespace": SPACE}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **json.loads(pod)})


def volume(name: str) -> dict[str, Any]:
    """Return a volume that the cluster may bind to any claim."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"/nowhere/{name}"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def end_migration(cluster: Kubernetes) -> None:
    """The pod of the migration succeeds before anything else starts."""
    place = collection("v1", "pods", SPACE)

    def runs() -> bool:
        return any(pod["status"].get("phase") == "Running" for pod in cluster.api.get(place)["items"])

    cluster.wait(runs, "the migration's pod")
    [pod] = cluster.api.get(place)["items"]
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "migrations"
    cluster.end_pod(pod, 0)
