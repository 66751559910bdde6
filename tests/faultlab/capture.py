"""Executes one run of a plan, from an empty folder to its captured output and exit status."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from tests.faultlab import environment, induced_faults, launch, runner, synthetic_identity
from tests.faultlab.cases import Captured, NotAsDeclared, Stream, without_lab
from tests.faultlab.fork_server_pool import Zygotes
from tests.faultlab.program import Plan
from tests.labs.ports import free_port

_KERNEL = (
    "oom",
    "killed process",
    "out of memory",
    "segfault",
    "traps:",
    "ext4-fs error",
    "i/o error",
    "filesystem read-only",
)


@cache
def _addresses() -> tuple[str, ...]:
    done = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return tuple(done.stdout.split())


def _kernel_lines() -> list[str]:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def _copy_files(plan: Plan, who: synthetic_identity.Identity, work: Path) -> str:
    for file in plan.files:
        shutil.copyfile(file, work / file.name)
    if plan.file is None:
        return ""
    name = who.script if plan.file.suffix == ".py" else Path(who.script).stem + plan.file.suffix
    shutil.copyfile(plan.file, work / name)
    return name


def _worker_logs(folder: Path, plan: Plan, who: synthetic_identity.Identity) -> Iterator[tuple[int, int, str, str]]:
    """Yield (rank, node, stream, text) of torchrun's per-rank files, with attempts joined in order."""
    each = max(plan.ranks // plan.nodes, 1)
    texts: dict[tuple[int, int, str], str] = {}
    for node in range(plan.nodes):
        for file in sorted((folder / str(node)).glob("*/attempt_*/*/std*.log"), key=lambda f: f.parts[-3:]):
            key = (node * each + int(file.parts[-2]), node, file.stem)
            texts[key] = texts.get(key, "") + file.read_text(encoding="utf-8", errors="replace")
    for (rank, node, stream), text in sorted(texts.items()):
        yield rank, node, stream, text


class Lab:
    """Executes plans. `zygote` starts Python programs from a preloaded interpreter, if given and allowed."""

    def __init__(self, zygotes: Zygotes | None = None) -> None:
        self._zygotes = zygotes

    def run(self, plan: Plan, seed: int) -> Captured:
        """Execute a plan once.

        Raises:
            Impossible: this machine cannot induce a fault of the plan.
            NoEnvironment: the interpreter of the plan is not built.
        """
        with ExitStack() as stack:
            base = Path(tempfile.mkdtemp(prefix="fl"))
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            return self._run(plan, seed, base, stack)

    def _run(self, plan: Plan, seed: int, base: Path, stack: ExitStack) -> Captured:
        token = base.name
        who = synthetic_identity.identity(f"{plan.id}#{seed}", plan.nodes)
        work, home, temporary, workers = (base / name for name in ("work", "home", "tmp", "logs"))
        for folder in (work, home, temporary, workers, base / "notes"):
            folder.mkdir()
        logs = plan.logs or (who.logs if plan.launcher in {"torchrun", "ranks"} else "ranks")
        python = environment.python(plan.environment)
        script = _copy_files(plan, who, work)
        values = {
            "work": str(work),
            "tmp": str(temporary),
            "seed": str(seed),
            "port": str(free_port()),
            "port2": str(free_port()),
            "python": str(python),
            "script": script,
            "ranks": str(plan.ranks),
            "lab": str(environment.root()),
        }
        declared = tuple(
            {key: launch.fill(value, values) if isinstance(value, str) else value for key, value in fault.items()}
            for fault in plan.faults
        )
        env = {
            "PATH": f"{python.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "USER": who.user,
            "LOGNAME": who.user,
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "LAB_SEED": str(seed),
            "LAB_RUN": token,
            "LAB_NOTES": str(base / "notes"),
        }
        if plan.prepare is not None:
            words = [str(python), script, *(launch.fill(word, values) for word in plan.prepare)]
            done = subprocess.run(words, cwd=work, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotAsDeclared(f"{plan.id}: preparing failed: {done.stderr[-2000:]}")
        values |= induced_faults.before(declared, work, stack)
        env |= {key: launch.fill(value, values) for key, value in plan.env.items()}
        kernel_before = len(_kernel_lines())
        outcome, streams = self._start(plan, who, values, logs, base, env, declared, token, stack)
        fresh_kernel = _kernel_lines()[kernel_before:]
        machine = {
            str(home): f"/home/{who.user}", str(temporary): "/tmp", str(workers): f"{who.folder}/logs",
            token: f"tmp{token[2:]}",
            str(environment.below(plan.environment) or environment.root()): who.python,
            str(environment.root()): f"/home/{who.user}/.cache",
            sys.base_prefix: who.python, sys.prefix: who.python, str(Path(__file__).parents[2]): who.folder,
        }  # fmt: skip
        scrub = synthetic_identity.scrubber(who, work, environment.folder(plan.environment), machine, _addresses())
        pids = {str(member.process.pid) for member in outcome.members}
        pids |= {note.name.removeprefix("session") for note in (base / "notes").glob("session*")}
        kernel = tuple(
            scrub(without_lab(line))
            for line in fresh_kernel
            if any(word in line.lower() for word in _KERNEL) and (token in line or pids & set(re.findall(r"\d+", line)))
        )
        shown = tuple(Stream(s.rank, s.node, s.name, scrub(without_lab(s.text))) for s in streams)
        return Captured(plan, seed, who, logs, shown, kernel, outcome)

    def _start(
        self, plan: Plan, who: synthetic_identity.Identity, values: Mapping[str, str], logs: str, base: Path,
        env: Mapping[str, str], declared: tuple[Mapping[str, Any], ...], token: str, stack: ExitStack,
    ) -> tuple[runner.Outcome, list[Stream]]:  # fmt: skip
        members: list[runner.Member] = []
        pending = induced_faults.during(declared)
        watching = runner.Watch(members, pending, token, base / "work", base / "notes", base / "logs")
        stack.callback(watching.close)
        if any(fault["kind"] == "cut" for fault in declared):
            watching.wires = induced_faults.Wires(plan.ranks, stack)
        starts = launch.starts(plan, who, values, logs, base / "logs")
        console: tuple[int, int] | None = None
        if logs == "console" and len(starts) > 1:
            read, write = os.pipe()
            console = (read, write)
            watching.add(os.fdopen(read, "rb"), None, "stdout")
        for start in starts:
            steps = induced_faults.inside(declared, start.rank, who.hosts[start.node], token, stack)
            full = {**env, **start.env}
            if watching.wires is not None and start.rank is not None:
                steps.insert(0, ["netns", watching.wires.name(start.rank)])
                full |= {"MASTER_ADDR": watching.wires.address(0), "GLOO_SOCKET_IFNAME": "eth0"}
            pipes = _pipes(console, merged=who.merged)
            out = pipes["stdout"][1]
            err = pipes["stderr"][1] if "stderr" in pipes else out
            member = runner.Member(start, self._process(plan, start, full, base / "work", steps, out, err))
            members.append(member)
            for name, pipe in pipes.items() if console is None else ():
                os.close(pipe[1])
                watching.add(os.fdopen(pipe[0], "rb"), member, name)
        if console is not None:
            os.close(console[1])
        outcome = runner.watch(members, watching, token, base / "notes", plan.timeout_s)
        streams = list(_streams(outcome, who, has_console=console is not None))
        for rank, node, name, text in _worker_logs(base / "logs", plan, who) if logs == "ranks" else ():
            streams.append(Stream(rank, who.hosts[node], name, text.rstrip("\n")))
        return outcome, streams

    def _process(
        self, plan: Plan, start: launch.Start, env: Mapping[str, str], work: Path, steps: list[list[Any]],
        out: int, err: int,
    ) -> runner.Process:  # fmt: skip
        """Start one process, forked from a preloaded interpreter where the plan allows it."""
        if self._zygotes is not None and start.python and plan.preload and not plan.fresh:
            forked: runner.Process = self._zygotes.start(
                plan.environment, plan.preload, start, env, work, steps, out, err
            )
            return forked
        return runner.start_fresh(start, env, work, steps, out, err)


def _pipes(console: tuple[int, int] | None, *, merged: bool) -> dict[str, tuple[int, int]]:
    """The pipes (read end, write end) of a process by stream; without "stderr", it goes where "stdout" goes."""
    if console is not None:
        return {"stdout": console}
    return {"stdout": os.pipe()} if merged else {"stdout": os.pipe(), "stderr": os.pipe()}


def _streams(outcome: runner.Outcome, who: synthetic_identity.Identity, *, has_console: bool) -> Iterator[Stream]:
    """Yield the output of a run: the shared console if there is one, then each member's own."""
    if has_console:
        yield Stream(None, who.hosts[0], "stdout", "\n".join(outcome.shared))
    for member in outcome.members:
        for name, lines in member.lines.items():
            if lines or not has_console:
                yield Stream(member.start.rank, who.hosts[member.start.node], name, "\n".join(lines))
