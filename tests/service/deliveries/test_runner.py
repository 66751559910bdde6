"""The threads: a stuck endpoint holds up nobody, and closing does not wait for it for long."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from service.db.session import Store
from service.deliveries.channels.channel import SENT, Outcome
from service.deliveries.records import DueDelivery
from service.deliveries.runner import Runner
from tests.service.databases import copy_migrated
from tests.service.deliveries.sample_messages import drain, put, target
from tests.service.frozen_clock import FrozenClock


class Channel:
    bulk = False

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.closed = False

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        del messages
        self.act()
        return SENT

    def close(self) -> None:
        self.closed = True


def sqlite(tmp_path: Path, clock: FrozenClock) -> Store:
    return Store(copy_migrated(tmp_path / "store.sqlite3"), clock=clock)


def test_a_stuck_endpoint_and_a_broken_one_delay_no_other(tmp_path: Path, clock: FrozenClock) -> None:
    store = sqlite(tmp_path, clock)
    let_go, result = threading.Event(), threading.Semaphore(0)
    stuck, broken, good = Channel(lambda: let_go.wait(120)), Channel(lambda: 1 / 0), Channel(result.release)
    runner = Runner(
        drain(store, clock, [target("stuck", stuck), target("broken", broken), target("good", good)]),
        look_every_s=0.02,
    )
    put(store, 1, 2, 3)
    with runner:
        assert all(result.acquire(timeout=60) for _ in range(3))
        put(store, 4)
        assert result.acquire(timeout=60)
        let_go.set()
    assert good.closed
    store.close()


def test_a_database_that_is_away_is_tried_again(tmp_path: Path, clock: FrozenClock) -> None:
    result = threading.Event()
    path = tmp_path / "later"
    store = Store(f"sqlite:///{path}/store.sqlite3", clock=clock)
    with Runner(drain(store, clock, [target("good", Channel(result.set))]), look_every_s=0.02):
        assert not result.wait(0.1)
        path.mkdir()
        store.upgrade()
        put(store, 1)
        assert result.wait(60)
    store.close()
