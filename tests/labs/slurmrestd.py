"""The Slurm lab's slurmrestd, on a Unix socket in `share`, with tokens (auth/jwt) as in production."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.labs.slurm import USER, Slurm, SlurmError


@dataclass(frozen=True)
class Rest:
    """The address of slurmrestd, and a token for root."""

    url: str
    token: str


@contextmanager
def slurmrestd(cluster: Slurm) -> Iterator[Rest]:
    """Yield a running slurmrestd; it refuses to run as Slurm's own user, which is root here."""
    socket = cluster.share / "slurmrestd.sock"
    inside = ["nsenter", "-t", str(cluster.init), "-m", "-p", "chroot", str(cluster.root)]
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    # SLURM_JWT=daemon: it acts as the user of each request's token, not as itself.
    daemon = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_JWT=daemon", "slurmrestd"]
    process = subprocess.Popen(
        [*inside, *become, *daemon, "-a", "rest_auth/jwt", "-s", "slurmctld", f"unix:{socket}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 300
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SlurmError("slurmrestd did not start")
            time.sleep(0.1)
        output = cluster.run("scontrol", "token", "username=root", "lifespan=3600")
        found = re.search(r"SLURM_JWT=(\S+)", output)
        assert found is not None, output
        yield Rest(f"unix:{socket}", found[1])
    finally:
        process.terminate()
        process.wait(20)
        socket.unlink(missing_ok=True)
