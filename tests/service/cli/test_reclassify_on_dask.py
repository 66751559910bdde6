"""The edges of `faultline reclassify --scheduler`; a real cluster is in tests/service/learning."""

from types import SimpleNamespace
from typing import Any

import pytest

from service.backoff import Backoff
from service.cli.classifier import reclassify_on_dask
from service.cli.classifier.reclassify_on_dask import WorkerTask, classify_on_worker
from service.errors import ConfigurationError, Unavailable
from service.failures.records import FailureFilter
from service.learning.reclassification import Range
from service.learning.records import PACKAGED, Reclassified

TASK = WorkerTask(Range(1, FailureFilter(), 1, 11), PACKAGED, "a model", "signatures")


class Parts:
    """The services of a worker, and its model."""

    store = None
    model = "a model"
    rules = "signatures"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between tries, and a worker with its model."""
    monkeypatch.setattr(Backoff, "next", lambda _: 0.001)
    monkeypatch.setattr(reclassify_on_dask, "_parts", lambda _: (Parts, Parts))


@pytest.mark.usefixtures("quick")
def test_a_worker_waits_for_a_database_that_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [Unavailable("restarting"), Unavailable("restarting"), Reclassified(read=10)]

    def classify(*_: object) -> Reclassified:
        answer = answers.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        found: Reclassified = answer
        return found

    monkeypatch.setattr(reclassify_on_dask, "classify_range", classify)
    found = classify_on_worker(TASK)
    assert found is not None
    assert found.read == 10
    monkeypatch.setattr(reclassify_on_dask, "RETRIED_FOR_S", 0.002)
    answers += [Unavailable("gone")] * 5
    with pytest.raises(Unavailable, match="gone"):
        classify_on_worker(TASK)
    assert len(answers) > 1


@pytest.mark.usefixtures("quick")
def test_a_worker_with_another_model_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "model", "another model")
    with pytest.raises(ConfigurationError, match="this worker has the model another model, the command a model"):
        classify_on_worker(TASK)


@pytest.mark.usefixtures("quick")
def test_a_worker_with_other_signatures_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "rules", "others")
    with pytest.raises(ConfigurationError, match="this worker has the signatures others, the command signatures"):
        classify_on_worker(TASK)


def test_a_worker_classifies_with_the_signatures_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use = SimpleNamespace(layered=SimpleNamespace(catalogue="packaged"))
    monkeypatch.setattr(reclassify_on_dask, "rules_version", str)
    services = SimpleNamespace(signatures=SimpleNamespace(current=lambda: in_use))
    monkeypatch.setattr(reclassify_on_dask, "_services", lambda: services)
    monkeypatch.setattr(reclassify_on_dask, "reclassification", lambda *_: SimpleNamespace(of=in_use.layered.catalogue))
    reclassify_on_dask._classifier.cache_clear()
    first: Any = reclassify_on_dask._parts(PACKAGED)[1]
    assert first.of == "packaged"
    assert reclassify_on_dask._parts(PACKAGED)[1] is first
    in_use.layered = SimpleNamespace(catalogue="another")
    second: Any = reclassify_on_dask._parts(PACKAGED)[1]
    assert second.of == "another"
    reclassify_on_dask._classifier.cache_clear()


def test_a_database_that_workers_can_not_reach_is_refused() -> None:
    class Services:
        class store:  # noqa: N801 - stands for an attribute
            dialect = "sqlite"

    services: Any = Services
    with pytest.raises(ConfigurationError, match="expected a PostgreSQL database"):
        reclassify_on_dask.run(services, FailureFilter(), PACKAGED, "tcp://127.0.0.1:1", wanted="")
