"""A real Slurm cluster, private to the test run: controller and nodes on this machine, publishing by its Kafka plugin.

Slurm 24.11 and all its dependencies are in one folder (made by install-slurm-lab). A run mounts that folder, unchanged,
under a memory-backed overlay in its own mount and process namespaces: when the run ends, for whatever reason, every
daemon, job and mount ends with it.
"""

import fcntl
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.labs.need import missing, need
from tests.labs.ports import free_ports

INSTALL = Path(__file__).with_name("install-slurm-lab")
INSTALL_SECONDS = 900
START_SECONDS = 300
NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
# A user that exists on every Debian system with the same id, so that this machine can read the jobs' logs too.
USER = "games"
SMALL_DISK = "small-disk"

SLURM_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
ProctrackType=proctrack/linuxproc
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1
SlurmdTimeout=30
KillWait=2
ReturnToService=2
JobRequeue=1
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.%n.log
JobCompType=jobcomp/kafka
JobCompLoc=/etc/slurm/rdkafka.conf
JobCompParams=topic={topic},flush_timeout=2000,poll_interval=1
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE DefMemPerNode=1024 State=UP
"""

# The first process of the namespace: mounts, starts the daemons, then reaps orphaned processes of jobs.
START = """\
set -eu
mount -t tmpfs -o mode=755 tmpfs "$LAB"
mkdir "$LAB/upper" "$LAB/work" "$LAB/root"
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$LAB/upper,workdir=$LAB/work" "$LAB/root"
R=$LAB/root
mount -t proc proc "$R/proc"
mount --rbind /dev "$R/dev"
mount --rbind /sys "$R/sys"
mkdir -p "$R$SHARE" "$R/etc/slurm" "$R/var/spool/slurmctld" "$R/run/munge" "$R/var/log/munge" "$R/etc/munge"
mount --bind "$SHARE" "$R$SHARE"
mount -t tmpfs -o size=1m,mode=1777 tmpfs "$R$SHARE/$SMALL_DISK"
echo "127.0.0.1 localhost $(hostname)" >"$R/etc/hosts"
cp "$CONF"/* "$R/etc/slurm/"
(umask 077; head -c 32 /dev/urandom >"$R/etc/slurm/jwt.key")
head -c 1024 /dev/urandom >"$R/etc/munge/munge.key"
in_root() { chroot "$R" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }
in_root sh -c 'chmod 400 /etc/munge/munge.key; chown -R munge:munge /run/munge /var/log/munge /etc/munge /var/lib/munge'
in_root setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged
in_root slurmctld
for node in $NODES; do in_root slurmd -N "$node"; done
echo started
while :; do sleep 86400 & wait $! || true; done
"""


class SlurmError(Exception):
    """A command of Slurm failed; the text is its output."""


def base() -> Path:
    """Return the installed folder; skips the test if it is missing."""
    where = subprocess.run([INSTALL, "where"], stdout=subprocess.PIPE, text=True, check=True, timeout=30)
    target = Path(where.stdout.strip())
    if not target.is_dir() and os.environ.get("TEST_REQUIRE") == "all":
        done = subprocess.run(
            [INSTALL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=INSTALL_SECONDS
        )
        if not target.is_dir():
            missing(f"the Slurm lab could not be installed: {done.stdout.strip()[-400:]}")
    if not target.is_dir():
        missing("the Slurm lab is not installed (make test-deps)")
    return target


@dataclass(frozen=True)
class Topology:
    """A topology plugin with its topology.conf."""

    plugin: str
    conf: str


@dataclass
class Slurm:
    """The running cluster. `share` is a folder that jobs see under the same path; their logs are written there."""

    share: Path
    topic: str
    root: Path
    process: subprocess.Popen[bytes]
    init: int

    def run(self, *command: str, user: str | None = None, timeout_s: float = 60) -> str:
        """Return the output of a command, run on the cluster's machine as root or `user`.

        Raises:
            SlurmError: the command failed.
        """
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        inside = ["nsenter", "-t", str(self.init), "-m", "-p", "chroot", str(self.root), *become]
        done = subprocess.run(
            [*inside, "env", "-i", "-C", str(self.share), path, "LANG=C.UTF-8", f"HOME={self.share}", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != 0:
            raise SlurmError(f"{' '.join(command)}: {done.stdout.strip()}")
        return done.stdout

    def submit(self, name: str, script: str, *options: str) -> int:
        """Submit a batch job of USER; return its id. Its output goes to `share`/logs/<name>-<id>.out."""
        path = self.share / f"{name}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        output = f"{self.share}/logs/%x-%j.out"
        printed = self.run("sbatch", "--parsable", "-J", name, "-o", output, *options, str(path), user=USER)
        return int(printed.strip().splitlines()[-1].partition(";")[0])

    def state(self, job: int) -> str:
        """Return a job's state according to the controller."""
        found = re.search(r"JobState=(\w+)", self.run("scontrol", "show", "job", str(job)))
        return found[1] if found else ""

    def wait_for(self, job: int, states: Sequence[str], timeout_s: float) -> str:
        """Wait until a job is in one of `states`; return the state."""
        deadline = time.monotonic() + timeout_s
        while (state := self.state(job)) not in states:
            if time.monotonic() > deadline:
                raise SlurmError(
                    f"job {job} is {state}, not {', '.join(states)}, after {timeout_s:g} s: {self.output_text()}"
                )
            time.sleep(0.5)
        return state

    def lose_node(self, node: str) -> None:
        """Kill a node's daemon with SIGKILL: for the controller this is the loss of the node."""
        self.run("sh", "-c", f"kill -9 $(cat /run/slurmd.{node}.pid)")

    def output_text(self) -> str:
        """Return the ends of the daemons' logs."""
        with suppress(SlurmError, subprocess.TimeoutExpired):
            return self.run("sh", "-c", "tail -n 15 /var/log/slurmctld.log /var/log/slurmd.*.log")
        return ""


@contextmanager
def cluster(
    broker: str, topic: str, *, topology: Topology | None = None, features: Mapping[str, str] | None = None
) -> Iterator[Slurm]:
    """Yield a cluster whose plugin publishes to `broker`; at most one at a time on a machine.

    Args:
        broker: address of the broker.
        topic: topic of the records.
        topology: the cluster's topology plugin; None: none.
        features: the features of nodes, by the node's name.
    """
    need("unshare", "nsenter", "setpriv", "chroot")
    if os.getuid() != 0:
        missing("the Slurm lab needs root")
    installed = base()
    folder = Path(tempfile.mkdtemp(prefix="faultline-slurm-"))
    folder.chmod(0o755)
    (folder / "lab").mkdir()
    share = _share(folder)
    configuration = _configuration(folder, broker, topic, features or {})
    if topology is not None:
        with (configuration / "slurm.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"TopologyPlugin={topology.plugin}\n")
        (configuration / "topology.conf").write_text(topology.conf, encoding="utf-8")
    with (installed.parent / "slurm-run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the nodes of two clusters would share control groups
        process = _start(installed, folder, share, configuration)
        try:
            slurm = Slurm(share, topic, folder / "lab" / "root", process, _only_child(process.pid))
            _wait_until_up(slurm)
            yield slurm
        finally:
            process.kill()
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()
            _remove_control_groups()
            shutil.rmtree(folder, ignore_errors=True)


def _share(folder: Path) -> Path:
    share = folder / "share"
    for path in (share, share / "logs", share / SMALL_DISK):
        path.mkdir()
        path.chmod(0o1777)
    return share


def _configuration(folder: Path, broker: str, topic: str, features: Mapping[str, str]) -> Path:
    configuration = folder / "conf"
    configuration.mkdir()
    host = socket.gethostname()
    ports = free_ports(len(NODES) + 1)
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=8192"
        + (f" Feature={features[node]}" if node in features else "")
        for node, port in zip(NODES, ports[1:], strict=True)
    )
    text = SLURM_CONF.format(host=host, port=ports[0], topic=topic, nodes=nodes)
    plugin = "cgroup/v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "cgroup/v1"
    (configuration / "slurm.conf").write_text(text, encoding="utf-8")
    (configuration / "cgroup.conf").write_text(
        f"CgroupPlugin={plugin}\nConstrainRAMSpace=yes\nIgnoreSystemd=yes\n", encoding="utf-8"
    )
    (configuration / "rdkafka.conf").write_text(f"bootstrap.servers={broker}\n", encoding="utf-8")
    return configuration


def _start(installed: Path, folder: Path, share: Path, configuration: Path) -> subprocess.Popen[bytes]:
    isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *isolate, "bash", "-c", START],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env={
            "PATH": os.environ["PATH"],
            "LAB": str(folder / "lab"),
            "BASE": str(installed),
            "SHARE": str(share),
            "CONF": str(configuration),
            "NODES": " ".join(NODES),
            "SMALL_DISK": SMALL_DISK,
        },
    )
    printed: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == b"started":
            return process
        printed.append(line.decode(errors="replace"))
    process.wait(30)
    process.stdout.close()
    text = "".join(printed)
    if "ermission" in text or "not permitted" in text:
        shutil.rmtree(folder, ignore_errors=True)
        missing(f"the Slurm lab may not make namespaces and mounts here: {text.strip()[-200:]}")
    raise SlurmError(f"the cluster did not start: {text}")


def _only_child(pid: int) -> int:
    """Return the first process of the namespace, by its pid on this machine."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _wait_until_up(slurm: Slurm) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(SlurmError):
            if slurm.run("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(NODES):
                return
        if time.monotonic() > deadline:
            raise SlurmError(f"the nodes did not come up: {slurm.output_text()}")
        time.sleep(0.5)


def _remove_control_groups() -> None:
    """Remove what the nodes' daemons left below /sys/fs/cgroup; their processes have ended."""
    for pattern in ("*/slurm_gpu[0-9]*", "system.slice/gpu[0-9]*_slurmstepd.scope"):
        for group in Path("/sys/fs/cgroup").glob(pattern):
            for below in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                with suppress(OSError):
                    below.rmdir()
            with suppress(OSError):
                group.rmdir()
