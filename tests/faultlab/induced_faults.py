"""Real faults that are induced for a run: the values of a declaration's `faults`.

Before the start (files are in the run's folder; `at` is relative to it)
    {kind="write", at, text}            {kind="truncate", at, bytes}         {kind="garble", at, offset, bytes}
    {kind="remove", at}                 {kind="chmod", at, mode="000"}       {kind="mkdir", at}
    {kind="tmpfs", at, kb}              a small disk mounted there (root)
    {kind="port_taken", port="{port}"}  another process listens on the port
    {kind="http", status, body, headers, delay_s, times, then, drop, truncate}  a stand-in at {http}; `times`
                                        answers with `status`, later ones with `then`; `drop` closes without an answer,
                                        `truncate` sends half the body; `tls = "expired" | "self-signed"` serves {https}
In the started processes (all, or `rank = n` with the launchers `ranks` and, preloaded, `torchrun`)
    {kind="rlimit", resource="as|nofile|fsize|nproc|stack|cpu|memlock|core|data", mb or value}
    {kind="user"}                       runs without root's capabilities: permission bits apply (chmod needs it)
    {kind="shm", mb}                    own /dev/shm of that size (root)
    {kind="offline"}                    own network namespace with only loopback: no names, no routes (root)
    {kind="memory", mb}                 memory control group (root); a kill by it is added to the run's kernel lines
During the run; `after` = regex matched with the output of any rank, `after_s` = seconds (after that)
    {kind="signal", signal="KILL", rank, after, after_s}    to that rank, or to rank "launcher"
    {kind="touch" | "unlink", at, after}                    creates or removes a file (chmod, truncate, write: too)
    {kind="cut", how="down" | "drop", rank, after}          that rank's network link goes down, or a firewall drops its
                                        packets; gives each rank (launcher `ranks`) a network namespace on one bridge (root)

A fault that this machine does not allow raises Impossible: the run is skipped with the reason, never faked.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faultlab import service_stand_ins

_BEFORE = {"write", "truncate", "garble", "remove", "chmod", "mkdir", "tmpfs", "port_taken", "http"}
_INSIDE = {"rlimit", "user", "shm", "offline", "memory"}
_DURING = {"signal", "touch", "unlink", "cut"}


class Impossible(RuntimeError):
    """This machine cannot induce the fault."""


def _need_root(what: str) -> None:
    if os.geteuid() != 0:
        raise Impossible(f"{what} needs root")


def alter(fault: Mapping[str, Any], work: Path) -> None:
    """Apply one change to the run's files."""
    at = work / fault["at"]
    match fault["kind"]:
        case "write":
            at.parent.mkdir(parents=True, exist_ok=True)
            if "hex" in fault:
                at.write_bytes(bytes.fromhex(fault["hex"]))
            else:
                at.write_text(fault["text"], encoding=fault.get("encoding", "utf-8"))
        case "truncate":
            os.truncate(at, fault["bytes"])
        case "garble":
            with at.open("r+b") as stream:
                stream.seek(fault.get("offset", 0))
                stream.write(os.urandom(fault.get("bytes", 64)))
        case "remove" | "unlink":
            shutil.rmtree(at) if at.is_dir() else at.unlink()
        case "chmod":
            at.chmod(int(fault["mode"], 8))
        case "mkdir":
            at.mkdir(parents=True)
        case "touch":
            at.touch()
        case other:
            raise ValueError(f"faults: {other!r} is no change to a file")


def _tmpfs(at: Path, kb: int, stack: ExitStack) -> None:
    _need_root("a small disk")
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kb}k,mode=777", "tmpfs", str(at)], check=True)
    stack.callback(subprocess.run, ["umount", "-l", str(at)], check=False)


def before(faults: Sequence[Mapping[str, Any]], work: Path, stack: ExitStack) -> dict[str, str]:
    """Induce the faults that are needed before the start; the stack undoes them. Returns placeholders of servers.

    Raises:
        Impossible: the machine does not allow it.
        ValueError: there is no such kind of fault.
    """
    given: dict[str, str] = {}
    for fault in faults:
        kind = fault["kind"]
        if kind not in _BEFORE | _INSIDE | _DURING:
            raise ValueError(f"faults: unknown kind {kind!r}")
        if "after" in fault or "after_s" in fault or kind not in _BEFORE:
            continue
        if kind == "tmpfs":
            _tmpfs(work / fault["at"], int(fault["kb"]), stack)
        elif kind == "port_taken":
            taken = stack.enter_context(socket.socket())
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((fault.get("host", "0.0.0.0"), int(fault["port"])))
            taken.listen()
        elif kind == "http":
            given |= stack.enter_context(service_stand_ins.serve(fault, work))
        else:
            alter(fault, work)
    return given


def _memory_group(mb: float, name: str, stack: ExitStack) -> Path:
    _need_root("a memory control group")
    first = Path("/sys/fs/cgroup/memory")
    base = first if first.is_dir() else Path("/sys/fs/cgroup")
    group = base / f"faultlab-{name}"
    try:
        group.mkdir(exist_ok=True)
        limit = str(int(mb * 1024 * 1024))
        if base == first:
            (group / "memory.limit_in_bytes").write_text(limit)
        else:
            (group / "memory.max").write_text(limit)
    except OSError as error:
        raise Impossible(f"a memory control group: {error}") from None
    stack.callback(_remove_group, group)
    return group


def _remove_group(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        return


class Wires:
    """A bridge with one network namespace for each rank, each with its own address; root only. The stack removes it.

    Rank n has the address 10.<a>.<b>.<n + 11> on its interface eth0.
    """

    def __init__(self, ranks: int, stack: ExitStack) -> None:
        _need_root("network namespaces")
        self._tag = f"{os.getpid() % 10000:x}"
        self._net = f"10.{os.getpid() % 50 + 100}.{os.getpid() // 50 % 250}"
        self._ranks = ranks
        stack.callback(self._undo)
        self._ip("link", "add", f"br{self._tag}", "type", "bridge")
        self._ip("link", "set", f"br{self._tag}", "up")
        for rank in range(ranks):
            name, wire = self.name(rank), f"v{self._tag}x{rank}"
            self._ip("netns", "add", name)
            self._ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._ip("link", "set", wire, "master", f"br{self._tag}", "up")
            self._ip("-n", name, "address", "add", f"{self.address(rank)}/24", "dev", "eth0")
            self._ip("-n", name, "link", "set", "eth0", "up")
            self._ip("-n", name, "link", "set", "lo", "up")

    def name(self, rank: int) -> str:
        """Return the namespace of a rank."""
        return f"lab{self._tag}r{rank}"

    def address(self, rank: int) -> str:
        """Return the address of a rank."""
        return f"{self._net}.{rank + 11}"

    def cut(self, rank: int, how: str) -> None:
        """Set that rank's link down (down), or let a firewall drop what it sends and receives (drop)."""
        if how == "down":
            self._ip("link", "set", f"v{self._tag}x{rank}", "down")
            return
        for chain in ("INPUT", "OUTPUT"):
            words = [
                "ip",
                "netns",
                "exec",
                self.name(rank),
                "iptables",
                "-I",
                chain,
                "-o" if chain == "OUTPUT" else "-i",
                "eth0",
            ]
            subprocess.run([*words, "-j", "DROP"], check=True, capture_output=True)

    @staticmethod
    def _ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Impossible(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def _undo(self) -> None:
        for rank in range(self._ranks):
            subprocess.run(["ip", "netns", "del", self.name(rank)], check=False, capture_output=True)
            subprocess.run(["ip", "link", "del", f"v{self._tag}x{rank}"], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", f"br{self._tag}"], check=False, capture_output=True)


def inside(
    faults: Sequence[Mapping[str, Any]], rank: int | None, host: str | None, name: str, stack: ExitStack
) -> list[list[Any]]:
    """Return the steps (see process_setup.py) of that rank's process, None: the launcher; `host` is its host name.

    Raises:
        Impossible: the machine does not allow it.
    """
    steps: list[list[Any]] = []
    if host is not None and os.geteuid() == 0:
        steps.append(["hostname", host])
    last: list[list[Any]] = []
    for fault in faults:
        if rank is not None and "rank" in fault and fault["rank"] != rank:
            continue
        made: list[Any] = []
        match fault["kind"]:
            case "rlimit":
                value = int(fault["mb"] * 1024 * 1024) if "mb" in fault else int(fault["value"])
                made = ["rlimit", fault["resource"], value]
            case "user":
                made = ["user"]
            case "shm":
                _need_root("an own /dev/shm")
                made = ["shm", fault["mb"]]
            case "offline":
                _need_root("a network namespace")
                made = ["offline"]
            case "memory":
                made = ["group", str(_memory_group(fault["mb"], f"{name}-{rank}", stack))]
        if made:
            step = made if rank is not None or "rank" not in fault else ["only", fault["rank"], made]
            (last if made[0] in {"rlimit", "user"} else steps).append(step)
    return [*steps, *last]


@dataclass(slots=True)
class Pending:
    """A fault that is triggered by an output line or a time."""

    fault: Mapping[str, Any]
    after: re.Pattern[str] | None
    after_s: float
    done: bool = False


def during(faults: Sequence[Mapping[str, Any]]) -> list[Pending]:
    """Return the faults that are triggered during the run."""
    return [
        Pending(fault, re.compile(fault["after"]) if "after" in fault else None, float(fault.get("after_s", 0)))
        for fault in faults
        if fault["kind"] in _DURING or "after" in fault or "after_s" in fault
    ]


def number(fault: Mapping[str, Any]) -> int:
    """Return the signal that a `signal` fault sends."""
    return int(getattr(signal, f"SIG{fault.get('signal', 'KILL')}"))
