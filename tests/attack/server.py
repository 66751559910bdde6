"""A server process on all addresses, and raw connections to it."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.db.session import Store
from service.settings import default_model_dir
from tests.labs.need import missing
from tests.service.databases import copy_migrated

FAULTLINE = (sys.executable, "-m", "service")
ROOT = Path(__file__).parents[2]
PROXY_SECRET = "p" * 40
POLL_S = 0.05


def environment(folder: Path, **given: str) -> dict[str, str]:
    """The environment of a process, with the settings in `given` and no others."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    database = f"sqlite:///{folder}/attacked.sqlite3"
    model = str(default_model_dir())
    settings = {
        f"FAULTLINE_{name}": value for name, value in {"DATABASE_URL": database, "MODEL_DIR": model, **given}.items()
    }
    return {**own, "PYTHONPATH": str(ROOT), **settings}


def set_environment(monkeypatch: pytest.MonkeyPatch, folder: Path, **given: str) -> None:
    """Give the command the settings in `given` and no others."""
    for name in [name for name in os.environ if name.startswith("FAULTLINE_")]:
        monkeypatch.delenv(name)
    for name, value in environment(folder, **given).items():
        if name.startswith("FAULTLINE_"):
            monkeypatch.setenv(name, value)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its process, port and the secret of a token for everything."""

    process: int
    port: int
    token: str
    folder: Path

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as made:
            yield made

    def ask(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes = b"") -> str:
        """The whole response to one request on its own connection."""
        with self.connected() as made:
            made.sendall(request(path, {"Content-Length": str(len(body)), **(headers or {})}, method) + body)
            return response(made)

    def memory(self, which: str = "VmHWM") -> int:
        """The peak (VmHWM) or present (VmRSS) memory of the process in KiB."""
        found = re.search(rf"{which}:\s+(\d+)", Path(f"/proc/{self.process}/status").read_text(encoding="ascii"))
        assert found is not None
        return int(found[1])


def request(path: str, headers: Mapping[str, str], method: str = "GET") -> bytes:
    """The header of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: faultline.example", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def response(made: socket.socket) -> str:
    """What the server sends until it closes the connection."""
    received = b""
    try:
        while piece := made.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received.decode("utf-8", "replace")


@contextmanager
def serving(folder: Path, **given: str) -> Iterator[Server]:
    """A server with a fresh database, bound to all addresses."""
    if not (default_model_dir() / "manifest.json").exists():
        missing("no model is trained (make install)")
    url = given.get("DATABASE_URL") or copy_migrated(folder / "attacked.sqlite3")
    with closing(Store(url)) as store, store.unit_of_work() as work:
        _, token = work.tokens.create("test", ["admin"])
    # To files: a pipe that nobody reads fills up, and the server then waits at its next message for ever.
    with (folder / "log").open("wb") as log, (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [*FAULTLINE, "serve", "--host", "0.0.0.0", "--port", "0"],
            env=environment(folder, **given),
            stdout=log,
            stderr=errors,
        )
    try:
        yield Server(process.pid, _port(process, folder / "errors"), token, folder)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _port(process: subprocess.Popen[bytes], errors: Path) -> int:
    """The port that the server names in its messages once it listens."""
    while True:
        ended = process.poll() is not None
        said = errors.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"Faultline is at \S+:(\d+)\n", said)
        if found is not None:
            return int(found[1])
        assert not ended, said
        time.sleep(POLL_S)
