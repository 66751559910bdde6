import logging
import threading

import pytest

from service.errors import Unavailable
from service.periodic import PeriodicTask


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
