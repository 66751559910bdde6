"""Events of the platform's own agents, controllers and policies: they count where a job's failure is theirs."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.extractor import Extractor
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.own_names import own_names

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
STEPS = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(1, 58))
WAITING = "".join(f"job unet3d: 0 of 2 pods created ({minute} min)\n" for minute in range(20))
DENIED = "2026-11-20 09:59:00 ClientError: An error occurred (AccessDenied) when calling the PutObject operation: {}\n"
BY_NODE = DENIED.format("User: arn:aws:sts::77:assumed-role/gpu-nodes/i-0c11aa is not authorized")
BY_JOB = DENIED.format("User: arn:aws:sts::77:assumed-role/unet3d/fit is not authorized")
AGENT = "Back-off restarting failed container spire-agent in pod spire-agent-4k"
OFF_THE_BUS = "NVRM: Xid (PCI:0000:3b:00): 79, pid=88, name=python3, GPU has fallen off the bus."
WEBHOOK = 'Error creating: failed calling webhook "inject.mesh.example": Post "https://mesh.svc": connection refused'
REFUSED = 'Error creating: admission webhook "gate.example" denied the request: resource Pod/ml/{} must set label'
DROPPED = "hubble: ml/fit-1:50112 <> ml/{}:23456 Policy denied DROPPED (TCP Flags: SYN)"
JOIN = (
    "2026-11-20 09:59:00 DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients "
    "joined.\n2026-11-20 09:59:01 The client has timed out while trying to connect to (fit-0.fit.ml.svc, 23456).\n"
)
NO_ANSWER = "dial tcp: lookup fit-0.fit.ml.svc.cluster.local on 10.96.0.10:53: no such host\n"
NO_CLUSTER = "nslookup: can't resolve 'kubernetes.default'\n"


def items(extractor: Extractor, log: str, *events: tuple[str, str | None, int]) -> list[EvidenceItem]:
    """Evidence of a run with events of (text, node, seconds before the end)."""
    seen = JobFacts(
        status="failed", nodes=("gpu1", "gpu2"), gpus=16, started_at=ENDED - timedelta(hours=1), ended_at=ENDED
    )
    happened = tuple(
        NodeEvent(text, ENDED - timedelta(seconds=before_s), node, "kubelet") for text, node, before_s in events
    )
    return extractor.extract(RawCase(seen, (LogStream(log, rank=0, node="gpu1"),), node_events=happened)).items


def beginnings(found: list[EvidenceItem]) -> list[str]:
    return [item.text for item in found if item.role == "initiating"]


@pytest.mark.parametrize(
    "report",
    [
        "airflow.exceptions.AirflowException: Pod fit-1 returned a failure.",
        "ERROR ExecuteUserScriptError: ExitCode 1",
        "PyTorchJob fit is failed because 1 Worker replica(s) failed.",
        "ERROR: Job failed: exit code 1",
        "RuntimeError: Kubernetes pod failed with exit code 1",
        "Error: Job has reached the specified backoff limit",
    ],
)
def test_a_workflow_engine_says_that_a_task_failed_and_not_why(extractor: Extractor, report: str) -> None:
    found = items(extractor, f"{STEPS}2026-11-20 09:58:40 {report}\n", (OFF_THE_BUS, "gpu1", 100))
    assert beginnings(found) == [OFF_THE_BUS]


@pytest.mark.parametrize(
    ("log", "node", "before_s", "counts"),
    [
        (BY_NODE, "gpu1", 1_200, True),
        (BY_NODE, "gpu7", 1_200, False),
        (BY_JOB, "gpu1", 1_200, False),
        (BY_JOB, "gpu1", 90, True),
    ],
)
def test_an_agent_that_gives_pods_their_identities_explains_refused_access(
    extractor: Extractor, log: str, node: str, before_s: int, counts: bool
) -> None:
    found = items(extractor, STEPS + log, (AGENT, node, before_s))
    assert (AGENT in beginnings(found)[:1]) is counts


def test_a_webhook_that_does_not_answer_keeps_pods_from_being_made_but_ends_none(extractor: Extractor) -> None:
    waiting, running = (items(extractor, log, (WEBHOOK, None, 1_200)) for log in (WAITING, STEPS))
    assert (beginnings(waiting), beginnings(running)) == ([WEBHOOK], [])


@pytest.mark.parametrize(("pod", "counts"), [("unet3d-0", True), ("other-0", False)])
def test_a_refused_pod_counts_where_it_is_the_jobs_own(extractor: Extractor, pod: str, counts: bool) -> None:
    found = items(extractor, WAITING, (REFUSED.format(pod), None, 1_200))
    assert bool(beginnings(found)) is counts


@pytest.mark.parametrize(("pod", "counts"), [("fit-0", True), ("serve-0", False)])
def test_dropped_packets_count_where_the_failure_names_an_end(extractor: Extractor, pod: str, counts: bool) -> None:
    dropped = DROPPED.format(pod).replace("ml/fit-1:50112", "ml/x-9:50112")
    found = items(extractor, JOIN, (dropped, "gpu1", 900))
    assert (dropped in beginnings(found)) is counts


def test_a_policy_that_was_rolled_out_leads_the_packets_that_it_drops(extractor: Extractor) -> None:
    policy = "argo: network policy deny-between-pods applied to all namespaces"
    found = items(extractor, JOIN, (policy, None, 3_000), (DROPPED.format("fit-0"), "gpu1", 900))
    assert beginnings(found)[0] == policy


def test_an_upgrade_that_drains_a_node_of_the_job_ends_its_processes(extractor: Extractor) -> None:
    asked = "2026-11-20 09:59:00 Received Signals.SIGTERM death signal, shutting down workers\n"
    upgrade = "pool train: updating gpu{} from 1.30 to 1.31, draining"
    own, other = (items(extractor, STEPS + asked, (upgrade.format(node), None, 90)) for node in (1, 7))
    assert (beginnings(own)[:1], upgrade.format(7) in beginnings(other)) == ([upgrade.format(1)], False)


def test_a_broken_device_leads_the_refusal_of_its_node_for_a_pod_that_never_started(extractor: Extractor) -> None:
    broken = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0xffff:1568)"
    refused = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"
    on_node, on_another = (
        items(extractor, WAITING, (broken, node, 3_550), (refused, "gpu9", 3_500)) for node in ("gpu9", "gpu8")
    )
    assert (beginnings(on_node)[:1], broken in beginnings(on_another)) == ([broken], False)


def test_a_volume_that_could_not_be_made_leads_the_pods_that_wait_for_it(extractor: Extractor) -> None:
    failed = 'failed to provision volume with StorageClass "rwx": rpc error: code = Internal desc = pool is full'
    waits = "0/9 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    found = items(extractor, WAITING, (failed, None, 3_500), (waits, None, 3_400))
    assert beginnings(found) == [failed]


def test_an_unknown_service_says_nothing_where_no_name_of_the_cluster_is_resolved(extractor: Extractor) -> None:
    alone, broken = (
        {hit.id for item in items(extractor, log) for hit in item.hits if hit.role == "initiating"}
        for log in (NO_ANSWER, NO_CLUSTER + NO_ANSWER)
    )
    assert "kubernetes.service-unknown" in alone
    assert (broken & {"kubernetes.service-unknown", "kubernetes.dns-broken"}) == {"kubernetes.dns-broken"}


def test_names_of_objects_in_namespaces_are_read_with_and_without_them() -> None:
    assert read_objects("denied: resource Pod/ml/fit-0 was blocked").pods == {"ml/fit-0"}
    assert {"ml/fit-0", "fit-0"} <= read_objects("flow to ml/fit-0 dropped").specific_names
    assert own_names(JobFacts(status="failed"), ["job unet3d: 0 of 2 pods created"], ()) == {"unet3d"}
