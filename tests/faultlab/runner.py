"""Executes one plan: starts its processes, reads their output, induces faults during the run, ends what remains."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from tests.faultlab import induced_faults, process_setup
from tests.faultlab.launch import Start

_RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "HOROVOD_RANK")
_GRACE_S = 3.0
_LOOK_S = 0.1


class Process(Protocol):
    """A started process: the interface of subprocess.Popen, also implemented for forks of the fork server."""

    pid: int

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""


@dataclass(slots=True)
class Member:
    """One started process and its output, line by line."""

    start: Start
    process: Process
    lines: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The result of a run. `code` is the job's exit code as its launcher reported it, negative for a signal."""

    members: list[Member]
    shared: list[str]
    code: int
    codes: Mapping[int, int]
    timed_out: bool
    started: float
    ended: float


def _session(pid: int) -> int | None:
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[3]
        )
    except (OSError, IndexError):
        return None


def tagged(token: str, notes: Path) -> list[int]:
    """Return the live processes of a run: those with LAB_RUN=token in their environment, and sessions in `notes`.

    Forks of the fork server show its environment, not theirs: they write a file `session<pid>` instead.
    """
    mark, found = f"LAB_RUN={token}".encode(), []
    sessions = {int(note.name.removeprefix("session")) for note in notes.glob("session*")}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            pid = int(entry.name)
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0") or (sessions and _session(pid) in sessions):
                    found.append(pid)
            except OSError:
                continue
    return sorted(found)


def _pid_of(rank: int, members: Sequence[Member], token: str, notes: Path) -> int | None:
    for member in members:
        if member.start.rank == rank:
            return member.process.pid
    if (notes / f"rank{rank}").exists():
        return int((notes / f"rank{rank}").read_text())
    for pid in tagged(token, notes):
        try:
            environ = dict(
                word.split(b"=", 1) for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in word
            )
        except OSError:
            continue
        if any(environ.get(name.encode()) == str(rank).encode() for name in _RANK_NAMES):
            return pid
    return None


class Watch:
    """Reads the pipes of all members and triggers pending faults when their line or time is reached."""

    def __init__(
        self,
        members: list[Member],
        pending: list[induced_faults.Pending],
        token: str,
        work: Path,
        notes: Path,
        follow: Path,
    ) -> None:
        self._follow, self._read, self._looked = follow, dict[Path, int](), 0.0
        self._members, self._pending, self._token, self._work, self._notes = members, pending, token, work, notes
        self._selector = selectors.DefaultSelector()
        self._began = time.monotonic()
        self.shared: list[str] = []
        self.wires: induced_faults.Wires | None = None

    def add(self, pipe: IO[bytes], member: Member | None, stream: str) -> None:
        """Read that pipe into a member's stream, or into the shared console."""
        os.set_blocking(pipe.fileno(), False)
        into = self.shared if member is None else member.lines.setdefault(stream, [])
        self._selector.register(pipe, selectors.EVENT_READ, (into, bytearray()))

    def step(self, wait_s: float) -> bool:
        """Read the available output; return False when all pipes are at their end."""
        if not self._selector.get_map():
            time.sleep(min(wait_s, 0.02))
        for key, _ in self._selector.select(wait_s) if self._selector.get_map() else ():
            into, rest = key.data
            try:
                chunk = os.read(key.fd, 1 << 16)
            except BlockingIOError:
                continue
            rest += chunk
            *whole, left = bytes(rest).split(b"\n")
            rest[:] = left
            if not chunk and left:
                whole.append(left)
            for line in whole:
                text = line.decode("utf-8", "replace")
                into.append(text)
                self._strike(text)
            if not chunk:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
        self._strike(None)
        if any(wait.after is not None and not wait.done for wait in self._pending):
            self._look()
        return bool(self._selector.get_map())

    def _look(self) -> None:
        """Read new lines that torchrun's workers wrote into their own files."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        for file in self._follow.glob("*/*/attempt_*/*/std*.log"):
            with file.open("rb") as stream:
                stream.seek(self._read.get(file, 0))
                chunk = stream.read()
            whole, _, _ = chunk.rpartition(b"\n")
            self._read[file] = self._read.get(file, 0) + (len(whole) + 1 if whole else 0)
            for line in whole.decode("utf-8", "replace").split("\n"):
                self._strike(line)

    def _strike(self, line: str | None) -> None:
        for wait in self._pending:
            if wait.done:
                continue
            if wait.after is not None:
                if line is None or not wait.after.search(line):
                    continue
            elif time.monotonic() - self._began < wait.after_s:
                continue
            if wait.after is not None and wait.after_s:  # first the line, then a delay in seconds
                wait.after, wait.after_s = None, time.monotonic() - self._began + wait.after_s
                continue
            wait.done = True
            self._induce(wait.fault)

    def _induce(self, fault: Mapping[str, object]) -> None:
        if fault["kind"] == "cut":
            assert self.wires is not None
            self.wires.cut(int(str(fault["rank"])), str(fault.get("how", "down")))
            return
        if fault["kind"] != "signal":
            induced_faults.alter(fault, self._work)
            return
        rank = fault.get("rank", 0)
        pid = (
            self._members[0].process.pid
            if rank == "launcher"
            else _pid_of(int(str(rank)), self._members, self._token, self._notes)
        )
        if pid is None:
            raise induced_faults.Impossible(f"no process of rank {rank} is there to be signalled")
        os.kill(pid, induced_faults.number(fault))

    def close(self) -> None:
        """Close the pipes."""
        for key in list((self._selector.get_map() or {}).values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()


def end(pids: Sequence[int], number: int) -> None:
    """Send a signal to processes, except those that have ended."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def start_fresh(
    start: Start, env: Mapping[str, str], work: Path, steps: list[list[Any]], out: int, err: int
) -> Process:
    """Start a process in its own session, as a shell would."""
    return subprocess.Popen(
        start.words,
        cwd=work,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        preexec_fn=(lambda: process_setup.enter(steps)) if steps else None,  # noqa: PLW1509 -- no threads start processes here
        start_new_session=True,
    )


@dataclass(slots=True)
class _Progress:
    """What is known of a run while it lasts. `codes` are exit codes by the number of the member."""

    members: Sequence[Member]
    timeout_s: float
    began: float = field(default_factory=time.monotonic)
    codes: dict[int, int] = field(default_factory=dict)
    first_failure: tuple[float, int] | None = None  # monotonic time and exit code
    timed_out: bool = False
    terminated: bool = False

    @property
    def alive(self) -> list[int]:
        """The processes of the members that have not ended."""
        return [member.process.pid for number, member in enumerate(self.members) if number not in self.codes]

    @property
    def all_ended(self) -> bool:
        """Whether every member has ended."""
        return len(self.codes) == len(self.members)

    def collect_exit_codes(self) -> None:
        """Note the members that have ended since the last call."""
        for number, member in enumerate(self.members):
            if number not in self.codes and (code := member.process.poll()) is not None:
                self.codes[number] = code
                if code != 0 and self.first_failure is None:
                    self.first_failure = (time.monotonic(), code)

    def is_late(self, by_s: float = 0.0) -> bool:
        """Whether the time limit was exceeded by more than `by_s` seconds."""
        return time.monotonic() - self.began > self.timeout_s + by_s

    def goes_on_after_a_failure(self, for_s: float) -> bool:
        """Whether one of several members failed more than `for_s` seconds ago."""
        return (
            self.first_failure is not None
            and len(self.members) > 1
            and time.monotonic() - self.first_failure[0] > for_s
        )

    def end_what_is_late(self, tagged_processes: Callable[[], list[int]]) -> None:
        """Send SIGTERM at the time limit or long after a failure, and SIGKILL some seconds later."""
        if self.is_late() and not self.terminated:
            self.timed_out = self.terminated = True
            end(self.alive, signal.SIGTERM)
        elif self.is_late(_GRACE_S):
            self.timed_out = True
            end([*self.alive, *tagged_processes()], signal.SIGKILL)
        elif not self.terminated and self.goes_on_after_a_failure(6 * _GRACE_S):
            self.terminated = True
            end(self.alive, signal.SIGTERM)
        elif self.terminated and self.goes_on_after_a_failure(8 * _GRACE_S):
            end([*self.alive, *tagged_processes()], signal.SIGKILL)


def watch(members: list[Member], watching: Watch, token: str, notes: Path, timeout_s: float) -> Outcome:
    """Read and wait until all processes end or the time limit is reached; then end what remains.

    If one of several ranks failed and the others continue past the grace period, they get SIGTERM, as from a scheduler.
    """
    started = time.time()
    progress = _Progress(members, timeout_s)
    try:
        while True:
            reading = watching.step(0.05)
            progress.collect_exit_codes()
            if progress.all_ended and (not reading or progress.is_late()):
                break
            if progress.all_ended and not tagged(token, notes):
                while watching.step(0.05):
                    pass
                break
            progress.end_what_is_late(lambda: tagged(token, notes))
    finally:
        for number in (signal.SIGCONT, signal.SIGKILL):
            end(tagged(token, notes), number)
            end(progress.alive, number)
        deadline = time.monotonic() + _GRACE_S
        while any(member.process.poll() is None for member in members) and time.monotonic() < deadline:
            time.sleep(0.02)
        watching.close()
    code = progress.first_failure[1] if progress.first_failure else 0
    return Outcome(members, watching.shared, code, progress.codes, progress.timed_out, started, time.time())
