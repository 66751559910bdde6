"""Runs consumers as child processes: a killed one is restarted at once, and none outlives the parent."""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

from service.backoff import Backoff
from service.shutdown import SignalShutdownFlag

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
SETTLED_S = 5.0
# A process that is killed more often than this is restarted with pauses.
MAX_KILLS, KILL_WINDOW_S = 3, 10.0
STOP_S = 90.0


@dataclass
class _Member:
    number: int
    process: ForkProcess
    began: float
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=30.0))
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_KILLS + 1))


class Supervisor:
    """Runs `run(number, stop)` in a process for each number.

    Processes are forked from a parent that has imported everything and started no threads, so a restart takes
    milliseconds. A killed process is restarted at once, one that ended with an error after growing pauses. An exit code
    in `fatal_codes` ends all processes.

    Args:
        numbers: the numbers of the processes.
        run: the function of a process; returns its exit code.
        fatal_codes: exit codes after which a restart is pointless.
    """

    def __init__(
        self,
        numbers: list[int],
        run: Callable[[int, SignalShutdownFlag], int],
        fatal_codes: frozenset[int],
    ) -> None:
        self._numbers = numbers
        self._run = run
        self._fatal_codes = fatal_codes

    def run(self, stop: SignalShutdownFlag) -> int:
        """Run until `stop` is set or a process ends with a fatal code; return the exit code."""
        members = [self._start(number) for number in self._numbers]
        later: list[tuple[float, _Member]] = []
        code = 0
        try:
            while not stop.is_set() and not code:
                pause = min((due for due, _ in later), default=time.monotonic() + 60.0) - time.monotonic()
                wait([stop.fileno(), *(one.process.sentinel for one in members)], max(0.0, pause))
                for member in [one for one in members if not one.process.is_alive()]:
                    members.remove(member)
                    code = code or self._ended(member, later)
                now = time.monotonic()
                for due, member in [entry for entry in later if entry[0] <= now]:
                    later.remove((due, member))
                    members.append(self._start(member.number, member))
        finally:
            self._end(members)
        return code

    def _ended(self, member: _Member, later: list[tuple[float, _Member]]) -> int:
        """Schedule the restart; return the exit code if it is fatal."""
        member.process.join()
        exitcode = member.process.exitcode or 0
        if exitcode in self._fatal_codes:
            return exitcode
        now = time.monotonic()
        ran_s = now - member.began
        if ran_s > SETTLED_S:
            member.backoff.reset()
        member.deaths.append(now)
        often = len(member.deaths) > MAX_KILLS and now - member.deaths[0] < KILL_WINDOW_S
        killed = exitcode < 0
        pause = 0.0 if killed and not often else member.backoff.next()
        how = f"was ended by signal {-exitcode} ({signal.strsignal(-exitcode)})" if killed else f"ended with {exitcode}"
        log.warning("process %d %s after %.0f s and is started again in %.1f s", member.number, how, ran_s, pause)
        later.append((now + pause, member))
        return 0

    def _start(self, number: int, before: _Member | None = None) -> _Member:
        process = multiprocessing.get_context("fork").Process(
            target=_child, args=(self._run, number, os.getpid()), name=f"worker-{number}"
        )
        process.start()
        member = _Member(number, process, time.monotonic())
        if before is not None:
            member.backoff, member.deaths = before.backoff, before.deaths
        return member

    def _end(self, members: list[_Member]) -> None:
        """Terminate all processes and wait; one that does not end in time is killed, and its batch is read again."""
        for member in members:
            member.process.terminate()
        deadline = time.monotonic() + STOP_S
        for member in members:
            member.process.join(max(0.0, deadline - time.monotonic()))
            if member.process.is_alive():
                log.error("process %d did not end in time and is killed", member.number)
                member.process.kill()
                member.process.join()


def _child(run: Callable[[int, SignalShutdownFlag], int], number: int, parent: int) -> None:
    die_with_parent(parent)
    stop = SignalShutdownFlag()
    stop.listen()
    sys.exit(run(number, stop))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends; the uncommitted batch is read again later."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the request
        os.kill(os.getpid(), signal.SIGKILL)
