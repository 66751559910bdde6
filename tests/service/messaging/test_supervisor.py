"""Each test's team runs in a process of its own, as an operator's does: it forks, takes signals, and is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = """
import sys, time, os
from pathlib import Path
from service.shutdown import SignalShutdownFlag
from service.messaging.supervisor import Supervisor

folder = Path(sys.argv[1])

def run(number, stop):
    with (folder / f"{number}.lives").open("a") as lives:
        lives.write(f"{os.getpid()}\\n")
    while not stop.wait(0.05):
        if (folder / f"{number}.exit").exists():
            return int((folder / f"{number}.exit").read_text())
    (folder / f"{number}.finished").touch()
    return 0

stop = SignalShutdownFlag()
stop.listen()
sys.exit(Supervisor([0, 1], run, frozenset({5})).run(stop))
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)])

    def lives(self, number: int) -> list[int]:
        path = self.folder / f"{number}.lives"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def until(self, happened: Callable[[], bool], patience_s: float = 60.0) -> float:
        started = time.monotonic()
        while not happened():
            assert time.monotonic() - started < patience_s
            time.sleep(0.01)
        return time.monotonic() - started


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    made.until(lambda: bool(made.lives(0)) and bool(made.lives(1)))
    yield made
    made.process.kill()
    made.process.wait(10)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_on_a_signal_all_finish_first(scene: Scene) -> None:
    scene.process.terminate()
    assert scene.process.wait(20) == 0
    assert (scene.folder / "0.finished").exists()
    assert (scene.folder / "1.finished").exists()


def test_a_killed_one_is_there_again_at_once_and_the_other_is_left_alone(scene: Scene) -> None:
    for killed, by in enumerate((signal.SIGKILL, signal.SIGKILL, signal.SIGRTMIN + 2)):  # the last has no name
        os.kill(scene.lives(0)[killed], by)
        assert scene.until(lambda: len(scene.lives(0)) == killed + 2) < 1.0  # noqa: B023 - asked within this round
    assert len(scene.lives(1)) == 1


@pytest.mark.slow
def test_one_that_is_killed_over_and_over_comes_back_after_pauses(scene: Scene) -> None:
    started = time.monotonic()
    while time.monotonic() - started < 4 or (len(scene.lives(0)) < 4 and time.monotonic() - started < 60):
        if alive(scene.lives(0)[-1]):
            os.kill(scene.lives(0)[-1], signal.SIGKILL)
        time.sleep(0.02)
    assert 4 <= len(scene.lives(0)) <= 8


def test_none_outlives_a_killed_parent(scene: Scene) -> None:
    children = [scene.lives(0)[0], scene.lives(1)[0]]
    scene.process.kill()
    scene.until(lambda: not any(alive(child) for child in children))
    assert not (scene.folder / "0.finished").exists()


def test_one_that_ends_for_good_ends_the_others_in_order(scene: Scene) -> None:
    (scene.folder / "0.exit").write_text("5")
    assert scene.process.wait(20) == 5
    assert (scene.folder / "1.finished").exists()


@pytest.mark.slow
def test_one_that_fails_is_started_again_after_a_pause(scene: Scene) -> None:
    (scene.folder / "0.exit").write_text("1")
    scene.until(lambda: len(scene.lives(0)) >= 3)
    assert len(scene.lives(0)) < 10
    assert len(scene.lives(1)) == 1
