"""A real S3 server on loopback: Versity's gateway over a folder (install-object-storage-lab builds it)."""

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.labs.need import missing

START_S = 60
INSTALL = Path(__file__).with_name("install-object-storage-lab")


@dataclass
class S3Server:
    """A server. `environment`: what its clients read from the environment, with its credentials."""

    folder: Path
    port: int
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None

    def bucket(self, name: str) -> str:
        """Create a bucket; return its address."""
        (self.folder / "data" / name).mkdir()
        return f"s3://{name}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [
            str(_program()),
            *("--port", f"127.0.0.1:{self.port}", "--access", self.environment["AWS_ACCESS_KEY_ID"]),
            *("--secret", self.environment["AWS_SECRET_ACCESS_KEY"], "--health", "/health", "--quiet"),
            *("posix", "--nometa", str(self.folder / "data")),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + START_S
        while not self._ready():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill the server; its objects stay."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """A running server, with random credentials and its objects below `folder`."""
    if not installed():
        missing("the object-storage lab is not installed (make test-deps)")
    (folder / "data").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "AWS_ACCESS_KEY_ID": "faultline",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
    }
    made = S3Server(folder, port, environment)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def installed() -> bool:
    """Whether the server is installed."""
    return _program().exists()


def _program() -> Path:
    found = subprocess.run([INSTALL, "where"], capture_output=True, text=True, check=True, env=os.environ.copy())
    return Path(found.stdout.strip()) / "versitygw"
