"""A real Dask scheduler with workers on loopback, each a process that a test may kill."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.labs.need import missing

_ROOT = Path(__file__).parents[2]
_ADDRESS = re.compile(r"Scheduler at:\s+(tcp://[0-9.]+:\d+)")
_REGISTERED = re.compile(r"Registered to:\s+tcp://")
PATIENCE_S = 300.0


class DaskCluster:
    """Processes of one scheduler and its workers; `environ` is that of the workers."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = {**os.environ, **environ, "PYTHONPATH": str(_ROOT), "PYTHONWARNINGS": "ignore"}
        self._scheduler: tuple[subprocess.Popen[bytes], Path] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""
        self._started = 0

    def start(self, workers: int) -> None:
        """Start a scheduler on a free port, and workers of one thread each; returns when they are connected."""
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        process, log = self._start("distributed.cli.dask_scheduler", *options)
        self._scheduler = (process, log)
        self.address = self._seen(process, log, _ADDRESS)[1]
        started = [self._worker() for _ in range(workers)]
        for worker, written in started:
            self._seen(worker, written, _REGISTERED)
        self.workers = [worker for worker, _ in started]

    def kill_worker(self) -> None:
        """Kill one worker with SIGKILL."""
        _kill(self.workers.pop())

    def kill_scheduler(self) -> None:
        """Kill the scheduler with SIGKILL; its workers end."""
        assert self._scheduler is not None
        _kill(self._scheduler[0])
        self._scheduler = None

    def close(self) -> None:
        """Kill all processes."""
        for worker in self.workers:
            _kill(worker)
        self.workers = []
        if self._scheduler is not None:
            self.kill_scheduler()

    def _worker(self) -> tuple[subprocess.Popen[bytes], Path]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10")
        place = ("--host", "127.0.0.1", "--local-directory", str(self._folder))
        return self._start("distributed.cli.dask_worker", self.address, *options, *place)

    def _start(self, module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._started += 1
        log = self._folder / f"dask-{self._started}.log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], env=self._environ, stdout=written, stderr=written, cwd=_ROOT
            )
        return process, log

    def _seen(self, process: subprocess.Popen[bytes], log: Path, wanted: re.Pattern[str]) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            text = log.read_text(encoding="utf-8", errors="replace")
            found = wanted.search(text)
            if found is not None:
                return found
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the process did not start:\n{text[-3000:]}")
            time.sleep(0.05)


@contextmanager
def dask_cluster(folder: Path, environ: Mapping[str, str]) -> Iterator[DaskCluster]:
    """A cluster that is not started yet; all its processes are killed afterwards."""
    if importlib.util.find_spec("distributed") is None:
        missing("Dask is not installed (the extra dask)")
    cluster = DaskCluster(folder, environ)
    try:
        yield cluster
    finally:
        cluster.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait(30)
