"""A real Alertmanager on loopback (Debian's prometheus-alertmanager)."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.labs.need import need

CONFIG = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n"
START_S = 60


@contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    """Yield the address of an Alertmanager that notifies nobody."""
    need("prometheus-alertmanager")
    (folder / "config.yml").write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        "prometheus-alertmanager",
        f"--config.file={folder}/config.yml",
        f"--storage.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    address = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            until = time.monotonic() + START_S
            while not _ready(address):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.05)
            yield address
        finally:
            process.kill()


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
