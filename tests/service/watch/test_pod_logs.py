from typing import Any

import pytest

from service.formats.kubernetes import containers as kubernetes_containers
from service.kubernetes.errors import ClusterUnavailable, ObjectNotFound, RequestRefused
from service.watch.pod_logs import CONTAINERS_MOST, SILENT_S, PodLogReader
from tests.service.watch.objects import ended_container, pod


class Texts:
    def __init__(self, answer: str | Exception = "step 1\nKilled\n") -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def text_tail(self, path: str, query: dict[str, Any], *, keep: int, read_at_most: int, within_s: float) -> str:
        assert keep < read_at_most
        assert within_s > 0
        self.asked.append((path, query))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def tails(api: Texts, one: dict[str, Any], silent: str | None = None) -> list[Any]:
    containers = kubernetes_containers.read(one["status"])
    return list(PodLogReader(api, lambda _: silent).of(one, containers, 3))


def test_the_logs_of_the_failed_containers_are_read() -> None:
    api = Texts()
    containers = [ended_container("good", 0), ended_container("bad", 1)]
    [found] = tails(api, pod(containerStatuses=containers))
    assert (found.rank, found.node, found.stream, found.tail) == (3, "gpu1", "bad", "step 1\nKilled\n")
    [(path, query)] = api.asked
    assert path == "/api/v1/namespaces/ml/pods/train-p1/log"
    assert (query["container"], query["previous"]) == ("bad", None)


def test_a_restarted_container_s_log_is_the_one_before() -> None:
    restarted = {"name": "main", "restartCount": 2, "state": {}, "lastState": ended_container()["state"]}
    api = Texts()
    tails(api, pod(containerStatuses=[restarted]))
    assert api.asked[0][1]["previous"] == "true"


@pytest.mark.parametrize(
    ("error", "output"),
    [
        (ObjectNotFound("x", 404), "deleted"),
        (RequestRefused("x", 403, "Forbidden"), "may not read logs"),
        (RequestRefused("container is waiting to start", 400), "waiting to start"),
        (ClusterUnavailable("timeout"), "kubelet gave no logs"),
        ("", "wrote nothing"),
    ],
)
def test_a_log_that_cannot_be_read_is_reported(error: Exception | str, output: str) -> None:
    [found] = tails(Texts(error), pod())
    assert found.tail is None
    assert output in found.missing


def test_a_node_that_does_not_answer_is_not_asked() -> None:
    api = Texts()
    [found] = tails(api, pod(), silent="node gpu1 does not answer")
    assert found.missing == "node gpu1 does not answer"
    assert not api.asked


def test_a_kubelet_that_gave_nothing_is_left_alone_for_a_while() -> None:
    api, now = Texts(ClusterUnavailable("timeout")), [0.0]
    reader = PodLogReader(api, lambda _: None, lambda: now[0])
    containers = kubernetes_containers.read(pod()["status"])
    for _ in range(3):
        [found] = reader.of(pod(), containers, None)
    assert len(api.asked) == 1
    assert found.missing is not None
    assert "a moment ago" in found.missing
    now[0] += SILENT_S + 1
    reader.of(pod(), containers, None)
    assert len(api.asked) == 2


def test_a_pod_that_never_ran_has_no_log() -> None:
    waiting = pod(phase="Pending", containerStatuses=[])
    del waiting["spec"]["nodeName"]
    [found] = tails(Texts(), waiting)
    assert (found.stream, found.missing) == ("main", "it never ran on a node")


def test_of_very_many_containers_the_first_ones_are_read() -> None:
    many = [ended_container(f"c{n}") for n in range(100)]
    assert len(tails(Texts(), pod(containerStatuses=many))) == CONTAINERS_MOST
