"""A Slurm to try hooks on: the lab's real one, or the fake over a file. Both are reached by the same commands."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from tests.labs import slurm, slurmrestd
from tests.service.hooks.slurm import fake_slurm

USER = slurm.USER
FAILS_ON_GPU1 = 'echo "ran on $SLURMD_NODENAME"\nif [ "$SLURMD_NODENAME" = gpu1 ]; then exit 3; fi'
GOES_ON = "sleep 600"


class Bench:
    """One Slurm. `folder` holds its commands, `share` is seen by its jobs, `spool` is its controller's own.

    `rest`: its slurmrestd, where the hook is to speak to that.
    """

    def __init__(
        self,
        kind: Literal["fake", "lab"],
        folder: Path,
        share: Path,
        spool: Path,
        cluster: slurm.Slurm | None = None,
    ) -> None:
        self.cluster = cluster
        self.rest: slurmrestd.Rest | None = None
        self.kind = kind
        self.spool = spool
        self.folder = folder
        self.share = share

    def run(self, tool: str, *arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [self.folder / tool, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={"PATH": os.defpath},
            cwd=self.share,
        )
        assert done.returncode == 0, (tool, arguments, done.stderr)
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        """A job of USER; what it writes goes to `share`/logs."""
        output = self.run(
            *("sbatch", "--parsable", f"--uid={USER}", f"--chdir={self.share}", "--job-name=train"),
            *(f"--output={self.share}/logs/%j.out", "--export=NONE", *options),
            given=f"#!/bin/bash\n{script}\n",
        )
        return output.strip()

    def job(self, job: str) -> dict[str, Any]:
        [found] = json.loads(self.run("scontrol", "show", "job", job, "--json"))["jobs"]
        assert isinstance(found, dict)
        return found

    def wait(self, job: str, states: Sequence[str], seconds: float = 600) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (found := self.job(job))["job_state"] not in [[state] for state in states]:
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found

    def failed(self, *options: str, script: str = FAILS_ON_GPU1) -> str:
        """A job that ran on gpu1 and failed; where that was still busy, another is tried."""
        for _ in range(10):
            job = self.submit(script, *options)
            found = self.wait(job, ["FAILED", "COMPLETED"])
            if found["nodes"] == "gpu1":
                return job
            time.sleep(0.5)
        raise AssertionError(found)

    def log_of(self, job: str) -> str:
        return (self.share / "logs" / f"{job}.out").read_text()


@contextmanager
def fake(folder: Path) -> Iterator[Bench]:
    share = folder / "share"
    (share / "logs").mkdir(parents=True)
    yield Bench("fake", fake_slurm.install(folder), share, folder / "spool")


def bench_of(cluster: slurm.Slurm, folder: Path, user: str | None = None) -> Bench:
    """The commands of a running cluster, as programs outside of it, run by root or `user`."""
    folder.mkdir(exist_ok=True)
    become = f"/usr/bin/setpriv --reuid={user} --regid={user} --clear-groups " if user else ""
    for tool in fake_slurm.TOOLS:
        command = folder / tool
        inside = f"/usr/bin/nsenter -t {cluster.init} -m -p /usr/sbin/chroot {cluster.root} {become}/usr/bin/env -C"
        command.write_text(f'#!/bin/sh\nexec {inside} "$(pwd)" /usr/bin/{tool} "$@"\n')
        command.chmod(0o755)
    assert os.access(folder / "sbatch", os.X_OK)
    spool = Path(f"/proc/{cluster.init}/root{cluster.root}/var/spool/slurmctld")
    return Bench("lab", folder, cluster.share, spool, cluster)
