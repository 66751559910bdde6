"""The runner's fork servers, one for each environment and set of modules, started on demand."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faultlab import environment, fork_server
from tests.faultlab.launch import Start

_READY_S = 400.0


class Zygotes:
    """Starts and keeps fork servers; `close` ends all."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="zy"))
        self._running: dict[tuple[str, tuple[str, ...]], tuple[subprocess.Popen[bytes], str]] = {}

    def _address(self, name: str, preload: tuple[str, ...]) -> str:
        held = self._running.get((name, preload))
        if held is not None and held[0].poll() is None:
            return held[1]
        address = str(self._folder / f"{len(self._running)}-{time.monotonic_ns()}")
        here = Path(fork_server.__file__)
        words = [
            str(environment.python(name)),
            "-u",
            str(here),
            address,
            str(here.with_name("process_setup.py")),
            *preload,
        ]
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        log = (self._folder / "log").open("ab")
        process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder)
        log.close()
        deadline = time.monotonic() + _READY_S
        while not Path(address).exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise environment.NoEnvironment(f"preloading {name}: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        self._running[name, preload] = (process, address)
        return address

    def start(
        self, name: str, preload: tuple[str, ...], start: Start, env: Mapping[str, str], work: Path,
        steps: list[list[Any]], out: int, err: int,
    ) -> Any:  # fmt: skip
        """Start a Python program as a fork of the fork server that preloads these modules."""
        address = self._address(name, preload)
        return fork_server.Forked(
            address, {"words": list(start.words), "env": dict(env), "cwd": str(work), "steps": steps}, out, err
        )

    def close(self) -> None:
        """End all fork servers."""
        for process, _ in self._running.values():
            process.terminate()
        for process, _ in self._running.values():
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
