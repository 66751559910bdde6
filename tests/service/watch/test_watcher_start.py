"""The start of the watcher, with its threads: the nodes are read before the ends of jobs that need them."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.errors import FaultlineError, Unavailable
from service.kubernetes.errors import RequestRefused
from service.kubernetes.paths import Object
from service.watch import watch_state as states
from service.watch import watcher
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.metrics import WatcherMetrics
from service.watch.node_watch import NodeStates
from service.watch.watch_state import Running, State
from service.watch.watcher import Watcher, WatchOptions, collections
from tests.service.frozen_clock import FrozenClock
from tests.service.watch.objects import NOW, node, pod

LONG_S = 20.0


class Cluster:
    """A cluster with one node and a pod that has ended, whose list of nodes comes last, or not at all."""

    def __init__(self, *, nodes: bool) -> None:
        self._nodes = nodes
        self.pods_listed = threading.Event()
        self.nodes_slow_s = 0.3
        self.no_pods = False

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        del query
        if path.endswith("/pods"):
            self.pods_listed.set()
            if self.no_pods:
                return {"items": [], "metadata": {"resourceVersion": "7"}}
            return {"items": [pod(job=None)], "metadata": {"resourceVersion": "7"}}
        if path.endswith("/nodes"):
            if not self._nodes:
                raise RequestRefused("nodes is forbidden", 403)
            self.pods_listed.wait(self.nodes_slow_s)
            labelled = node()
            labelled["metadata"]["labels"] |= {"topology.kubernetes.io/zone": "east"}
            return {"items": [labelled], "metadata": {"resourceVersion": "7"}}
        return {"items": [], "metadata": {"resourceVersion": "7"}}

    def watch(self, path: str, query: Mapping[str, Any], *, silence_s: float) -> Iterator[Object]:
        del path, query, silence_s
        return iter(())


class Sent:
    """Keeps the events, and shuts the watcher down after the first."""

    def __init__(self, stop: threading.Event) -> None:
        self.events: list[JobCompletion] = []
        self._stop = stop

    def send(self, events: Sequence[JobCompletion]) -> None:
        self.events += events
        self._stop.set()

    def close(self) -> None:
        pass


def first_event(folder: Path, *, nodes: bool) -> JobCompletion:
    stop = threading.Event()
    api, sent, known = Cluster(nodes=nodes), Sent(stop), NodeStates()
    started = Watcher(
        api, WatchOptions("lab", collections([], None, with_nodes=True), folder / "watch.json"), sent, None,
        EvidenceCollector(api, known, None), known, FrozenClock(NOW), WatcherMetrics(),
    )  # fmt: skip
    given_up = threading.Timer(LONG_S, stop.set)
    given_up.start()
    started.run(stop)
    given_up.cancel()
    return sent.events[0]


def test_a_pod_that_ended_before_the_start_names_the_place_of_its_node(tmp_path: Path) -> None:
    assert first_event(tmp_path, nodes=True).topology == {"gpu1": {"zone": "east"}}


def test_without_the_right_to_list_nodes_the_ends_of_pods_are_sent_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "NODES_FIRST_S", 0.1)
    assert first_event(tmp_path, nodes=False).topology == {}


class Away(Sent):
    """Does not answer, and shuts the watcher down meanwhile."""

    def send(self, events: Sequence[JobCompletion]) -> None:
        del events
        self._stop.set()
        raise Unavailable("no answer")


@pytest.mark.parametrize("sender", [Away, Sent])
@pytest.mark.slow
def test_an_end_that_was_missed_is_not_forgotten_if_the_service_does_not_answer_until_the_shutdown(
    tmp_path: Path, sender: type[Sent]
) -> None:
    path = tmp_path / "watch.json"
    job = Running("Job", "ml", "train", "jobs|*")
    states.save(path, State("lab", versions={}, running={"u1": job}), NOW)
    found: list[str] = []
    for one in (sender, Sent):
        stop = threading.Event()
        api, sent, known = Cluster(nodes=True), one(stop), NodeStates()
        api.no_pods = True
        started = Watcher(
            api, WatchOptions("lab", collections([], None, with_nodes=True), path), sent, None,
            EvidenceCollector(api, known, None), known, FrozenClock(NOW), WatcherMetrics(),
        )  # fmt: skip
        given_up = threading.Timer(1.5, stop.set)
        given_up.start()
        started.run(stop)
        given_up.cancel()
        found += [event.event_id or "" for event in sent.events]
    assert found == ["kubernetes:Job:u1"]


class Odd(Cluster):
    """Meets an error that the watcher does not expect."""

    def watch(self, path: str, query: Mapping[str, Any], *, silence_s: float) -> Any:
        del path, query, silence_s
        raise KeyError("odd")


def test_an_unexpected_error_ends_the_watcher_so_that_it_is_started_again(tmp_path: Path) -> None:
    api, sent, known = Odd(nodes=True), Sent(threading.Event()), NodeStates()
    started = Watcher(
        api, WatchOptions("lab", collections([], None, with_nodes=True), tmp_path / "watch.json"), sent, None,
        EvidenceCollector(api, known, None), known, FrozenClock(NOW), WatcherMetrics(),
    )  # fmt: skip
    stop = threading.Event()
    given_up = threading.Timer(LONG_S, stop.set)
    given_up.start()
    with pytest.raises(FaultlineError, match="can't be watched any more: KeyError"):
        started.run(stop)
    given_up.cancel()
