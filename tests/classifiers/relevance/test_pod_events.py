"""Events of pods: those of the job's own pods and of pods that serve all jobs count, those of other jobs do not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.extractor import Extractor
from classifiers.relevance.event_candidates import Reason, Support
from classifiers.relevance.own_names import is_of_foreign_pod
from tests.classifiers.relevance.test_node_events import END, event, job, judged

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
PENDING = "MPIJob ml/unet3d launcher pending\n"
MOUNT = "Warning FailedMount pod/{}: MountVolume.MountDevice failed for volume pvc-1: mount failed: exit status 32"
PULL = 'Warning Failed pod/{}: Failed to pull image "registry.example/ml/unet3d:1": 503 Service Unavailable'
PROBE = "Warning Unhealthy pod/{}: Readiness probe failed: HTTP probe failed with statuscode: 503"
EVICTED = "Evicted pod {}: The node was low on resource: memory."
OTHER_POD = "Evicted pod/etl-shuffle-4: The node was low on resource: ephemeral-storage. Container x was using 900124Mi"
PRESSURE = "Node n7 status is now: NodeHasDiskPressure"
TIMED_OUT = frozenset({"pytorch.nccl-watchdog-timeout"})
NO_NAMES = frozenset({"python.name-resolution"})


def items(
    extractor: Extractor, log: str, text: str, *, before_end_s: int = 60, node: str = "gpu7", **facts: Any
) -> list[EvidenceItem]:
    values: dict[str, Any] = {"status": "failed", "job_id": "f81d4fae", "nodes": ("gpu1",)}
    seen = JobFacts(**(values | facts), started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    happened = NodeEvent(text, ENDED - timedelta(seconds=before_end_s), node, "kubelet")
    return extractor.extract(RawCase(seen, (LogStream(log),), node_events=(happened,))).items


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ("unet3d-worker-1", None),
        ("unet3d", None),
        ("unet3d-launcher-x7k2p", None),
        ("other-worker-1", Reason.OTHER_NODE),
        ("unet3dx-worker-1", Reason.OTHER_NODE),
        ("my-unet3d-worker-1", Reason.OTHER_NODE),
    ],
)
def test_a_pod_named_after_the_job_is_its_own_on_any_node(pod: str, reason: Reason | None) -> None:
    seen = job(own_entries=[], other_entries=TIMED_OUT, job_names=lambda: frozenset({"unet3d"}))
    mount = event(MOUNT.format(pod), node="gpu7", entries=("kubernetes.failed-mount",))
    assert judged(mount, seen).reason is reason


def test_a_pod_named_after_another_job_is_not_one_of_a_job_on_the_same_node() -> None:
    seen = job(own_entries=[], other_entries=TIMED_OUT, job_names=lambda: frozenset({"unet3d"}))
    own = event(MOUNT.format("unet3d-worker-1"), entries=("kubernetes.failed-mount",))
    other = event(MOUNT.format("other-worker-1"), entries=("kubernetes.failed-mount",))
    assert (judged(own, seen).reason, judged(other, seen).reason) == (None, Reason.OTHER_PROCESS)


def test_a_further_pod_of_a_role_that_the_logs_name_belongs_to_the_job() -> None:
    seen = job("endpoint pre-8b-worker-0:29400", own_entries=[], other_entries=TIMED_OUT)
    reasons = [
        judged(event(MOUNT.format(pod), node="gpu7", entries=("kubernetes.failed-mount",)), seen).reason
        for pod in ("pre-8b-worker-3", "pre-9b-worker-3")
    ]
    assert reasons == [None, Reason.OTHER_NODE]


def test_a_pod_with_the_id_of_the_job_in_its_name_is_its_own() -> None:
    seen = job(own_entries=[], other_entries=TIMED_OUT, job_id="ml/bert-7")
    mount = event(MOUNT.format("bert-7-worker-0"), node="gpu7", entries=("kubernetes.failed-mount",))
    assert judged(mount, seen).reason is None


@pytest.mark.parametrize(
    ("log", "pod", "leads"),
    [
        (PENDING, "unet3d-worker-1", True),
        (PENDING, "other-worker-1", False),
        ("launcher pending\n", "unet3d-worker-1", False),
        ("pytorchjob.kubeflow.org/unet3d created\n", "unet3d-worker-1", True),
        ('waiting for job "unet3d"\n', "unet3d-worker-1", True),
        ("Job: ml/UNet3D\n", "unet3d-worker-1", True),
    ],
)
@pytest.mark.parametrize("text", [MOUNT, PULL])
def test_what_a_log_calls_a_job_tells_which_pods_are_its_own(
    extractor: Extractor, log: str, pod: str, text: str, *, leads: bool
) -> None:
    found = items(extractor, log, text.format(pod), reason="DeadlineExceeded")
    assert (found[0].node == "gpu7") is leads
    assert any(item.node == "gpu7" for item in found) is leads


def test_what_kept_a_job_from_starting_leads_its_deadline(extractor: Extractor) -> None:
    found = items(extractor, PENDING, PULL.format("unet3d-worker-1"), before_end_s=600, reason="DeadlineExceeded")
    deadline = next(item for item in found if item.text == "reason=DeadlineExceeded")
    assert "kubernetes.image-pull" in [hit.id for hit in found[0].hits]
    assert found[0].onset < deadline.onset


def test_a_deadline_leads_where_nothing_kept_the_job_from_starting(extractor: Extractor) -> None:
    found = items(extractor, PENDING, PULL.format("other-worker-1"), before_end_s=600, reason="DeadlineExceeded")
    assert [hit.id for hit in found[0].hits] == ["kubernetes.deadline"]


@pytest.mark.parametrize("node", ["gpu1", "infra2"])
def test_a_name_server_serves_all_jobs_whatever_its_pod_is_called(node: str) -> None:
    probe = event(PROBE.format("coredns-5d78c9869d-x2k4j"), node=node,
                  entries=("kubernetes.probe-failed", "network.dns-down"))  # fmt: skip
    fails = job(own_entries=[NO_NAMES], other_entries=frozenset())
    other = job(own_entries=[frozenset({"python.key-error"})], other_entries=frozenset())
    assert judged(probe, fails).support is Support.LOG
    assert judged(probe, other).reason is not None


def test_the_failing_probe_of_a_pod_that_serves_no_other_is_of_another_process() -> None:
    probe = event(PROBE.format("cache-7"), entries=("kubernetes.probe-failed",))
    seen = job(own_entries=[NO_NAMES], other_entries=frozenset())
    assert judged(probe, seen).reason is Reason.OTHER_PROCESS


@pytest.mark.parametrize(
    ("log", "is_used"),
    [
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution\n", True),
        ("KeyError: 'x'\n", False),
        ("training\n", False),
    ],
)
def test_a_failed_name_server_is_evidence_where_the_log_shows_unresolved_names(
    extractor: Extractor, log: str, *, is_used: bool
) -> None:
    found = items(extractor, log, PROBE.format("coredns-5d78c9869d-x2k4j"), node="gpu1")
    assert any(item.node == "gpu1" for item in found) is is_used


@pytest.mark.parametrize(
    ("status", "before_end_s", "reason"),
    [
        ("evicted", 20, None),
        ("evicted", 400, Reason.OTHER_PROCESS),
        ("failed", 20, Reason.OTHER_PROCESS),
    ],
)
def test_an_eviction_at_the_end_of_an_evicted_job_counts_whatever_the_pod_is_called(
    status: str, before_end_s: float, reason: Reason | None
) -> None:
    seen = job(own_entries=[], other_entries=frozenset(), failed=None, last_progress=None, status=status)
    evicted = event(EVICTED.format("ml/a81f-0"), at=END - before_end_s, entries=("kubernetes.evicted-memory",))
    found = judged(evicted, seen)
    assert found.reason is reason
    assert (found.support is Support.SCHEDULER) is (reason is None)


@pytest.mark.parametrize(("status", "leads"), [("evicted", True), ("failed", False)])
def test_an_eviction_leads_where_the_scheduler_reports_it(extractor: Extractor, status: str, *, leads: bool) -> None:
    found = items(extractor, "loading\n", EVICTED.format("ml/a81f-0"), before_end_s=20, node="gpu1", status=status)
    assert (found[0].node == "gpu1") is leads


def test_a_pod_is_foreign_where_nothing_of_the_job_names_it() -> None:
    assert is_of_foreign_pod(OTHER_POD, ["clip-worker-0: step 7", "clip"])
    assert not is_of_foreign_pod(OTHER_POD, ["etl-shuffle-0: step 7"])
    assert not is_of_foreign_pod(PRESSURE, ["clip-worker-0: step 7"])
    assert is_of_foreign_pod("pod ml/etl-0 was evicted", ["clip-worker-0: step 7"])
    assert not is_of_foreign_pod("the tripod ml/etl-0 fell", ["clip-worker-0: step 7"])


def test_memory_that_a_foreign_pod_used_does_not_refute_the_pressure_on_the_node(extractor: Extractor) -> None:
    log = LogStream("step 7 loss 2.0\nReceived 15 death signal, shutting down workers", node="n7", stream="stderr")
    job = JobFacts(status="failed", scheduler="kubernetes", reason="Evicted", nodes=("n7",), ended_at=ENDED)
    events = (NodeEvent(OTHER_POD, ENDED, "n7"), NodeEvent(PRESSURE, ENDED, "n7"))
    found = extractor.extract(RawCase(job=job, streams=(log,), node_events=events)).items
    hits = {hit.id: hit.role for item in found if item.text == PRESSURE for hit in item.hits}
    assert hits.get("kubernetes.evicted-memory") == "initiating"
