"""The watcher on a small cluster in memory; the real one is in tests/flows."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.errors import ConfigurationError, TooLarge, Unavailable
from service.kubernetes.errors import ClusterUnavailable, ObjectNotFound
from service.kubernetes.paths import Object
from service.watch import watch_state as states
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.metrics import WatcherMetrics
from service.watch.node_watch import NodeStates
from service.watch.pod_logs import PodLogReader
from service.watch.reflector import Observation, ObservationKind
from service.watch.watcher import Watcher, WatchOptions, collections, without_logs
from tests.service.frozen_clock import FrozenClock
from tests.service.watch.objects import NOW, disruption, ended_container, job, node, pod

JOBS, PODS, NODES, EVENTS = collections([], None, with_nodes=True)
FAILED = ("Failed", "BackoffLimitExceeded")


class Cluster:
    """Answers from a few objects; `away` says so often that it does not answer."""

    def __init__(self) -> None:
        self.jobs: dict[str, Object] = {}
        self.pods: list[Object] = []
        self.away = 0
        self.logs_asked = 0

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        if self.away:
            self.away -= 1
            raise ClusterUnavailable("no answer")
        if "/jobs/" in path:
            if path.rpartition("/")[2] not in self.jobs:
                raise ObjectNotFound("no such Job", 404)
            return self.jobs[path.rpartition("/")[2]]
        return {"items": self.pods if path.endswith("/pods") and query else []}

    def watch(self, path: str, query: Mapping[str, Any], *, silence_s: float) -> Iterator[Object]:
        raise NotImplementedError

    def text_tail(self, path: str, query: Mapping[str, Any], *, keep: int, read_at_most: int, within_s: float) -> str:
        del path, query, keep, read_at_most, within_s
        self.logs_asked += 1
        return "step 1\n"


class Sent:
    """Takes events; raises what it is told to first."""

    def __init__(self) -> None:
        self.events: list[JobCompletion] = []
        self.trouble: list[Exception] = []
        self.largest: int | None = None

    def send(self, events: Sequence[JobCompletion]) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        if self.largest is not None and sum(len(one.model_dump_json()) for one in events) > self.largest:
            raise TooLarge("too large")
        self.events += events

    def close(self) -> None:
        pass


class Now(threading.Event):
    """Never waits."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return self.is_set()


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster, self.sent, self.stop = Cluster(), Sent(), Now()
        self.notes: list[Object] = []
        self.measures = WatcherMetrics()
        self.watcher = self.start()

    def start(self) -> Watcher:
        """A watcher, as after a restart."""
        known = NodeStates()
        self.watcher = Watcher(
            self.cluster,
            WatchOptions("lab", [JOBS, PODS, NODES, EVENTS], self.path),
            self.sent,
            self.notes.extend,
            EvidenceCollector(self.cluster, known, PodLogReader(self.cluster, known.silent)),
            known,
            FrozenClock(NOW),
            self.measures,
        )
        return self.watcher

    @property
    def path(self) -> Path:
        return self.folder / "watch.json"

    def see(self, what: ObservationKind, *objects: Object) -> None:
        of = {"Job": JOBS, "Pod": PODS, "Node": NODES, "Event": EVENTS}
        seen = [Observation(what, of[one["kind"]], one, one["metadata"].get("resourceVersion")) for one in objects]
        self.watcher.handle(seen, self.stop)

    def list_jobs(self, *jobs: Object) -> None:
        listed = [Observation("listed", JOBS, one) for one in jobs]
        self.watcher.handle(
            [Observation("list_begins", JOBS, {}), *listed, Observation("all_listed", JOBS, {}, "90")], self.stop
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_failed_pod_is_sent_once_with_its_log_and_the_facts_of_its_job(world: World) -> None:
    world.cluster.jobs["train"] = job(FAILED)
    world.see("changed", pod(phase="Running"))
    assert not world.sent.events
    world.see("changed", pod())
    world.see("changed", pod(), pod())
    [result] = world.sent.events
    assert (result.status, result.queue, result.logs[0].tail) == ("failed", "gpus", "step 1\n")
    assert world.cluster.logs_asked == 1


def test_ends_that_were_sent_are_not_sent_again_after_a_restart(world: World) -> None:
    world.see("changed", pod(), job(FAILED))
    world.start()
    world.see("listed", pod(), job(FAILED))
    assert len(world.sent.events) == 2


def test_killed_before_it_noted_it_tells_the_same_ids_again(world: World) -> None:
    world.see("changed", pod())
    world.path.unlink()
    world.start()
    world.see("listed", pod())
    assert len(world.sent.events) == 2
    assert len({one.key() for one in world.sent.events}) == 1


def test_how_far_it_came_is_noted_only_after_it_arrived(world: World) -> None:
    world.sent.trouble = [Unavailable("no broker")]
    world.stop.set()
    world.see("changed", pod())
    assert not world.path.exists()
    world.stop.clear()
    world.sent.trouble = [Unavailable("no broker"), ConfigurationError("a wrong token"), Unavailable("no broker")]
    world.see("changed", pod())
    assert len(world.sent.events) == 1
    assert states.load(world.path, "lab").versions[PODS.name] == "5"


def test_a_cluster_that_does_not_answer_is_asked_again(world: World) -> None:
    world.cluster.away = 3
    world.see("changed", pod())
    assert len(world.sent.events) == 1


def test_a_job_that_disappeared_meanwhile_is_reported_as_unknown_once(world: World) -> None:
    world.list_jobs(job(uid="a", name="a"), job(uid="b", name="b"))
    world.start()
    world.list_jobs(job(uid="b", name="b"))
    [result] = world.sent.events
    assert (result.job_id, result.reason) == ("ml/Job/a", "UnknownEnd")
    world.start()
    world.list_jobs(job(uid="b", name="b"))
    assert len(world.sent.events) == 1


def test_a_job_whose_end_was_seen_does_not_vanish(world: World) -> None:
    world.list_jobs(job(uid="a", name="a"))
    world.see("changed", job(FAILED, uid="a", name="a"))
    world.list_jobs()
    assert [one.reason for one in world.sent.events] == ["BackoffLimitExceeded"]


def test_a_job_deleted_while_it_ran_was_cancelled(world: World) -> None:
    running = job(uid="a", name="a")
    running["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
    world.see("changed", job(uid="a", name="a"))
    world.see("deleted", running)
    assert [one.status for one in world.sent.events] == ["cancelled"]
    world.list_jobs()
    assert len(world.sent.events) == 1


def test_a_pod_taken_with_its_node_is_the_node_s_end_and_its_job_s_too(world: World) -> None:
    world.see("changed", node(), node(ready="Unknown"))
    taken = pod(phase="Running", containerStatuses=[], conditions=[disruption("DeletionByTaintManager")])
    world.see("deleted", taken)
    world.see("changed", job(FAILED))
    pod_end, job_end = world.sent.events
    assert pod_end.status == job_end.status == "node_fail"
    assert pod_end.logs[0].missing == "node gpu1 does not answer"
    assert any("ReadyIsUnknown" in line.text for line in job_end.node_events)
    assert not world.cluster.logs_asked


def test_the_end_of_a_job_finds_its_pods_whose_failure_was_not_observed(world: World) -> None:
    world.cluster.pods = [pod(containerStatuses=[ended_container(code=137, reason="OOMKilled")])]
    world.see("changed", job(FAILED))
    [result] = world.sent.events
    assert (result.status, result.exit_code, result.logs[0].tail) == ("out_of_memory", 137, "step 1\n")


def test_the_deadline_of_a_job_names_what_its_pod_waited_for(world: World) -> None:
    waiting = {
        "name": "main",
        "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no x"}},
    }
    world.see("changed", pod(phase="Pending", containerStatuses=[waiting]))
    world.see("deleted", pod(phase="Pending", containerStatuses=[waiting]))
    world.see("changed", job(("Failed", "DeadlineExceeded")))
    [result] = world.sent.events
    assert result.status == "timeout"
    assert result.message is not None
    assert "ImagePullBackOff: no x" in result.message


def test_nodes_are_sent_when_they_change_and_their_events_as_they_arrive(world: World) -> None:
    world.see("listed", node(), node("gpu2", "Unknown"))
    assert [one["metadata"]["name"] for one in world.notes] == ["gpu2"]  # it went while nobody watched
    world.notes.clear()
    world.see("changed", node(), node("gpu2", "Unknown"))
    assert not world.notes
    event = {
        "kind": "Event",
        "metadata": {"name": "e", "uid": "u"},
        "involvedObject": {"kind": "Node", "name": "gpu1"},
        "reason": "Rebooted",
        "message": "m",
    }
    world.see("changed", node(ready="Unknown"), event)
    world.see("deleted", node(ready="Unknown"))
    assert [one.get("kind", "gone") for one in world.notes] == ["Node", "Event", "gone"]
    assert {one.get("clusterName") or one["cluster"] for one in world.notes} == {"lab"}


def test_the_end_of_a_pod_names_the_rack_and_the_zone_of_its_node(world: World) -> None:
    labelled = node()
    labelled["metadata"]["labels"] |= {
        "cloud.provider.com/topology-rack": "r7",
        "topology.kubernetes.io/zone": "east",
        "fabric.topograph.run/tier-0": "",
        "network.topology.nvidia.com/leaf": "leaf2",
    }
    world.see("listed", labelled)
    world.see(
        "changed", pod(), pod("p2", phase="Succeeded", containerStatuses=[ended_container(code=0, reason="Completed")])
    )
    world.see("deleted", labelled)
    world.see("changed", pod("p3"))
    assert [one.topology for one in world.sent.events] == [
        {"gpu1": {"rack": "r7", "switch": "leaf2", "zone": "east"}}
    ] * len(world.sent.events)
    assert len(world.sent.events) == 3


def test_a_node_without_labels_has_no_place(world: World) -> None:
    odd = node()
    odd["metadata"]["labels"] = None
    world.see("listed", odd)
    world.see("changed", pod())
    assert [one.topology for one in world.sent.events] == [{}]


def test_an_object_that_can_t_be_read_stops_nothing(world: World) -> None:
    bad = pod("p2", startTime="noon")
    world.see("changed", bad, pod())
    assert len(world.sent.events) == 1
    counted = world.measures.registry.get_sample_value("faultline_watch_unreadable_total", {"kind": "Pod"})
    assert counted == 1


def test_an_end_that_is_too_large_is_sent_separately_without_its_logs(world: World) -> None:
    world.sent.largest = 3_500
    loud = pod("p2")
    loud["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "long\n" * 800
    world.see("changed", pod(), loud)
    first, second = world.sent.events
    assert first.logs[0].tail is not None
    assert second.logs[0].missing == "left out: the event was too large"
    assert without_logs(second) == second


def test_a_secret_is_removed_before_a_field_is_cut(world: World) -> None:
    world.see("changed", pod())
    [sent] = world.sent.events
    secret = "ghp_aB1cDeFgHiJkLmNoPqRsTuVwXyZ123456789"
    command = f"train {'--lr 1 ' * 139} --resume {secret}"
    assert command.index(secret) < 1_000 < len(command)
    short = without_logs(sent.model_copy(update={"command": command})).command
    assert short is not None
    assert "ghp_aB" not in short


def test_what_is_too_large_even_then_is_given_up_and_stops_nothing(world: World) -> None:
    world.sent.largest = 10
    world.see("changed", pod())
    assert world.measures.registry.get_sample_value("faultline_watch_dropped_total") == 1
    world.sent.largest = None
    world.see("changed", pod("p2"))
    assert len(world.sent.events) == 1


def test_pods_of_services_are_no_jobs(world: World) -> None:
    served = pod()
    served["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    world.see("changed", served)
    world.see("deleted", served)
    assert not world.sent.events


def test_pods_of_a_running_job_are_not_missed(world: World) -> None:
    world.see("changed", pod(phase="Running"), pod("alone", job=None, phase="Running"))
    assert [one.name for one in world.watcher.state.running.values()] == ["train-alone"]
