"""Jobs and pods under a JobSet, TrainJob, PyTorchJob or RayJob: one job, whose end is that of the outermost."""

import threading
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.kubernetes.errors import RequestRefused
from service.kubernetes.paths import Object
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.job_end_mapper import owner_collections
from service.watch.metrics import WatcherMetrics
from service.watch.node_watch import NodeStates
from service.watch.reflector import Observation, ObservationKind, follow
from service.watch.watcher import Watcher, WatchOptions, collections
from tests.service.frozen_clock import FrozenClock
from tests.service.watch.objects import ENDED, NOW, disruption, job, pod
from tests.service.watch.test_watcher import Cluster, Now, Sent

FAILED = ("Failed", "BackoffLimitExceeded")
JOBSET_LABELS = {"jobset.sigs.k8s.io/jobset-name": "llm"}
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
FOLLOWED = {of.kind: of for of in [*collections([], None, with_nodes=False), *owner_collections([], None)]}


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster, self.sent, self.measures = Cluster(), Sent(), WatcherMetrics()
        self.watcher = self.start()

    def start(self) -> Watcher:
        """A watcher, as after a restart."""
        known = NodeStates()
        self.watcher = Watcher(
            self.cluster,
            WatchOptions("lab", list(FOLLOWED.values()), self.folder / "watch.json"),
            self.sent,
            None,
            EvidenceCollector(self.cluster, known, None),
            known,
            FrozenClock(NOW),
            self.measures,
        )
        return self.watcher

    def see(self, what: ObservationKind, *objects: Object) -> list[JobCompletion]:
        """What is sent because of these objects."""
        before = len(self.sent.events)
        seen = [Observation(what, FOLLOWED[one["kind"]], one, "5") for one in objects]
        self.watcher.handle(seen, Now())
        return self.sent.events[before:]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def child_job(name: str, *conditions: tuple[str, str], **labels: str) -> Object:
    """A Job of the JobSet `llm`, which may be that of the TrainJob `llm`."""
    made = job(*conditions, uid=f"{name}-uid", name=name)
    made["metadata"]["labels"] = {**JOBSET_LABELS, **labels}
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "llm", "uid": "s", "controller": True}]
    return made


def child_pod(uid: str, of: str, **status: Any) -> Object:
    """A pod of one of its Jobs, with the labels that the controllers of JobSet and Jobs set."""
    made = pod(uid, job=of, **status)
    made["metadata"]["labels"] = dict(JOBSET_LABELS)
    return made


def owner(kind: str, condition: str, reason: str, name: str = "llm", **meta: Any) -> Object:
    stated = {"type": condition, "status": "True", "reason": reason, "message": "words", "lastTransitionTime": ENDED}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"{kind}-uid",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            **meta,
        },
        "spec": {},
        "status": {"conditions": [stated]},
    }


@pytest.mark.parametrize("seen_first", [True, False])
def test_a_train_job_its_job_set_jobs_and_pods_have_one_job_id_and_one_end(world: World, *, seen_first: bool) -> None:
    """The pods of a TrainJob name the JobSet only; their Job names the TrainJob."""
    jobs = [child_job(name, FAILED, **STEP) for name in ("llm-node-0", "llm-launcher-0")]
    world.cluster.jobs = {one["metadata"]["name"]: one for one in jobs}
    if seen_first:
        world.see("changed", child_job("llm-node-0", **STEP))
    above = {"kind": "TrainJob", "name": "llm", "controller": True}
    events = world.see(
        "changed",
        child_pod("p1", "llm-node-0"),
        child_pod("p2", "llm-launcher-0", phase="Succeeded", containerStatuses=[], conditions=[ready()]),
        *jobs,
        owner("JobSet", "Failed", "FailedJobs", ownerReferences=[above]),
        owner("TrainJob", "Failed", "FailedJobs"),
    )
    assert {one.job_id for one in events} == {"ml/TrainJob/llm"}
    assert [one.pod for one in events] == ["train-p1", "train-p2", "llm-node-0", "llm-launcher-0", "llm", None]


def ready() -> dict[str, Any]:
    return {"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": ENDED}


def test_the_end_of_a_job_set_says_what_ended_its_pods(world: World) -> None:
    world.cluster.jobs = {"llm-node-0": child_job("llm-node-0")}
    preempted = child_pod("p1", "llm-node-0", conditions=[disruption("PreemptionByScheduler")], containerStatuses=[])
    world.see("changed", preempted)
    world.see("deleted", child_job("llm-node-0", FAILED))
    [result] = world.see("changed", owner("JobSet", "Failed", "ReachedMaxRestarts"))
    assert (result.status, result.reason, result.nodes) == ("preempted", "PreemptionByScheduler", ("gpu1",))
    assert "ReachedMaxRestarts: words" in (result.message or "")


def test_a_deadline_of_an_owner_stays_one(world: World) -> None:
    of_owner = pod("p1", job=None)
    of_owner["metadata"]["ownerReferences"] = [{"kind": "PyTorchJob", "name": "llm", "uid": "x", "controller": True}]
    world.see("changed", of_owner)
    late = owner("PyTorchJob", "Failed", "PyTorchJobFailed")
    late["status"]["conditions"][0]["message"] = (
        "Job llm has failed because it was active longer than specified deadline"
    )
    [result] = world.see("changed", late)
    assert (result.job_id, result.status) == ("ml/PyTorchJob/llm", "timeout")


def test_the_end_of_a_ray_job_keeps_its_own_log(world: World) -> None:
    ended = {
        "kind": "RayJob",
        "metadata": {"name": "sweep", "namespace": "ml", "uid": "r"},
        "status": {
            "jobDeploymentStatus": "Failed",
            "jobStatus": "FAILED",
            "reason": "AppFailed",
            "endTime": ENDED,
            "message": "Job entrypoint command failed with exit code 1, last available logs "
            "(truncated to 20,000 chars):\nKeyError: 'x'\n",
        },
    }
    submitter = job(FAILED, uid="sweep-abc-uid", name="sweep-abc")
    submitter["metadata"]["ownerReferences"] = [{"kind": "RayJob", "name": "sweep", "uid": "r", "controller": True}]
    world.cluster.jobs = {"sweep-abc": submitter}
    of_pod, of_submitter = world.see("changed", pod("p1", job="sweep-abc"), submitter)
    [result] = world.see("changed", ended)
    assert {of_pod.job_id, of_submitter.job_id, result.job_id} == {"ml/RayJob/sweep"}
    assert result.logs[0].tail is not None
    assert "KeyError: 'x'" in result.logs[0].tail


def test_a_job_under_an_owner_that_disappeared_meanwhile_is_no_end(world: World) -> None:
    [jobs, sets] = [FOLLOWED[kind] for kind in ("Job", "JobSet")]
    running_set = owner("JobSet", "StartupPolicyInProgress", "x")
    listed = [Observation("listed", jobs, child_job("llm-node-0")), Observation("listed", sets, running_set)]
    world.watcher.handle(listed, Now())
    world.start()
    for of in (jobs, sets):
        world.watcher.handle([Observation("list_begins", of, {}), Observation("all_listed", of, {}, "9")], Now())
    assert [(one.job_id, one.reason) for one in world.sent.events] == [("ml/JobSet/llm", "UnknownEnd")]


def test_a_kind_that_the_cluster_does_not_have_is_asked_for_seldom(caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(Cluster):
        def get(self, path: str, query: Any = None) -> Object:
            del query
            raise RequestRefused(f"{path} not found", 404)

    pauses: list[float | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            if len(pauses) == 2:
                self.set()
            return self.is_set()

    assert [seen.what for seen in follow(Refusing(), FOLLOWED["JobSet"], None, Stop())] == ["list_begins"] * 2
    assert pauses == [600.0, 600.0]
    assert not caplog.records
