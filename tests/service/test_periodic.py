import logging
import threading
import time

import pytest

from service.errors import Unavailable
from service.periodic import PeriodicTask, in_portions, running
from service.telemetry import Telemetry


def test_does_it_now_and_then_whatever_comes_of_it_until_closed(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Semaphore(0)
    outcomes = [ValueError("odd"), Unavailable("the database does not answer"), None]

    def action() -> None:
        done.release()
        if outcomes and (error := outcomes.pop()) is not None:
            raise error

    beside = PeriodicTask(action, interval_s=0.01, name="test")
    with caplog.at_level(logging.INFO):
        beside.start()
        for _ in range(5):
            assert done.acquire(timeout=60)
        beside.close()
    assert "later: the database does not answer" in caplog.text
    assert "failed and will be retried" in caplog.text
    while done.acquire(blocking=False):
        pass
    assert not done.acquire(timeout=0.1)


def test_the_metric_says_when_a_task_last_succeeded() -> None:
    """A task that fails every time, such as retention behind a lock, is found before the disk is full."""
    telemetry, called = Telemetry(), threading.Semaphore(0)

    def fails() -> None:
        called.release()
        raise Unavailable("a lock was not free in time")

    tasks = [
        PeriodicTask(fails, interval_s=0.01, name="retention"),
        PeriodicTask(called.release, interval_s=0.01, name="counts"),
    ]
    began = time.time()
    with running(tasks, telemetry.task_success):
        first = success(telemetry, "retention")
        until = time.monotonic() + 60
        while success(telemetry, "counts") < began + 0.2 and time.monotonic() < until:
            assert called.acquire(timeout=60)
    assert success(telemetry, "counts") > began + 0.1
    assert success(telemetry, "retention") == first
    assert first >= began


def success(telemetry: Telemetry, task: str) -> float:
    """The metric of a task."""
    value = telemetry.registry.get_sample_value("faultline_task_success_timestamp_seconds", {"task": task})
    assert value is not None
    return value


def test_each_portion_but_the_last_is_followed_by_a_pause_as_long_as_it_took() -> None:
    takes, pauses, now = [4.0, 2.0, 1.0], list[float](), 100.0

    def step() -> bool:
        nonlocal now
        now += takes.pop(0)
        return bool(takes)

    in_portions(step, pauses.append, lambda: now)
    assert takes == []
    assert pauses == [4.0, 2.0]
