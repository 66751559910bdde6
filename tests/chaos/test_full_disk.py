"""A full disk under SQLite, or under a hook's journal: both wait, and do everything once when there is space again."""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.clock import SystemClock
from service.db.session import Store
from service.formats import recognise
from service.hooks.request import Failed, Lease, Request, Settled
from service.logs.fetch import LogFetcher
from service.messaging.consumer import Consumer, ConsumerLimits
from service.messaging.record import TopicPartition
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.telemetry import Telemetry
from tests.labs.need import missing
from tests.service.hooks.fakes import FakeScheduler
from tests.service.hooks.test_runner import DONE, Hook, request
from tests.service.messaging.fakes import DeadLetterTopic
from tests.service.messaging.memory_source import MemoryBroker, MemorySource
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import ByWord, event

EVENTS = 60
PLACE = TopicPartition("jobs", 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=False, capture_output=True
    )
    if not mounted or mounted.returncode != 0:
        missing("a small file system can't be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path, leave: int) -> Path:
    """A file that leaves so many bytes of the file system free."""
    ballast = folder / "ballast"
    state = os.statvfs(folder)
    ballast.write_bytes(b"\0" * (state.f_bavail * state.f_frsize - leave))
    return ballast


def test_a_worker_waits_for_space_and_stores_everything_once(small_disk: Path) -> None:
    store = Store(f"sqlite:///{small_disk}/faultline.sqlite3")
    store.upgrade()
    rng = random.Random(1)
    broker = MemoryBroker({"jobs": 1})
    for number in range(EVENTS):
        tail = f"{rng.randbytes(15_000).hex()}\nModuleNotFoundError: No module named 'm{number}'"
        one: dict[str, Any] = event(f"job-{number}", logs=[{"rank": 0, "stream": "stderr", "tail": tail}])
        broker.put(PLACE, orjson.dumps(one))
    ballast = fill(small_disk, leave=300_000)
    telemetry, letters, stop = Telemetry(), DeadLetterTopic(), threading.Event()
    consumer = Consumer(
        MemorySource(broker, "worker", ["jobs"]),
        recognise.parse,
        diagnose_with(DiagnosisTools(store, LogFetcher(()), ByWord(), policy.built_in(), SystemClock(), telemetry)),
        letters,
        clock=SystemClock(),
        telemetry=telemetry,
        limits=ConsumerLimits(events=5),
    )
    running = threading.Thread(target=consumer.run, args=(stop,))
    running.start()
    try:
        until(lambda: telemetry.registry.get_sample_value("faultline_database_up") == 0, running)
        assert (broker.committed(PLACE) or 0) < EVENTS
        ballast.unlink()
        until(lambda: broker.committed(PLACE) == EVENTS, running)
    finally:
        stop.set()
        running.join(30)
    with store.reading() as reading:
        stored = [reading.jobs.attempts("orion", f"job-{number}") for number in range(EVENTS)]
    store.close()
    assert [len(attempts) for attempts in stored] == [1] * EVENTS
    assert letters.sent == []


class FillsTheDisk(FakeScheduler):
    """Its disk is full once the action is done: the outcome can not be written."""

    def __init__(self, folder: Path, *, can_look_up: bool) -> None:
        super().__init__(can_look_up=can_look_up, kind="slurm" if can_look_up else "command")
        self.folder = folder

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        outcome = super().execute(request, lease)
        fill(self.folder, leave=0)
        return outcome


def test_a_hook_starts_nothing_that_it_cannot_write_down(small_disk: Path) -> None:
    hook = Hook(small_disk / "journal")
    ballast = fill(small_disk, leave=0)
    hook.service.waits = [request()]
    with pytest.raises(OSError, match="No space left"):
        hook.runner.round()
    assert hook.scheduler.done == []
    ballast.unlink()
    hook.service.waits = [request(lease_token="another", extra={"lease_count": 2})]
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]
    assert hook.service.received == [("r1", DONE)]
    hook.journal.close()


@pytest.mark.parametrize("can_look_up", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_hook_repeats_nothing_whose_outcome_it_could_not_write_down(
    small_disk: Path, *, can_look_up: bool, restarted: bool
) -> None:
    hook = Hook(small_disk / "journal", can_look_up=can_look_up)
    hook.scheduler = FillsTheDisk(small_disk, can_look_up=can_look_up)
    hook.restart()
    hook.service.waits = [request()]
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            hook.runner.round()
        if restarted:
            hook.restart()
    assert hook.service.received == []
    (small_disk / "ballast").unlink()
    hook.runner.round()
    hook.service.waits = [request(lease_token="another", extra={"lease_count": 2})]
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]
    told = {settled.result for _, settled in hook.service.received if isinstance(settled, Settled)}
    assert told == {"done" if can_look_up else "unknown"}
    hook.journal.close()


def until(happened: Any, running: threading.Thread) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert running.is_alive(), "the consumer ended"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
