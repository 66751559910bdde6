"""One run of a plan, from an empty folder to a labelled-case/1 line with its provenance."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from classifiers.faultlab import environment, faults, identity, launch, runner
from classifiers.faultlab.program import Plan
from classifiers.faultlab.zygotes import Zygotes

TAIL_BYTES = 32 * 1024
_KERNEL = ("oom", "killed process", "out of memory", "segfault", "traps:", "ext4-fs error", "i/o error", "filesystem read-only")


class NotAsDeclared(RuntimeError):
    """A run did not fail the way its declaration says."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What one process printed to one stream, whole and scrubbed."""

    rank: int | None
    node: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Captured:
    """A run's streams and end, before it becomes a case."""

    plan: Plan
    seed: int
    who: identity.Identity
    logs: str
    streams: tuple[Stream, ...]
    kernel: tuple[str, ...]
    outcome: runner.Outcome


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def _addresses() -> tuple[str, ...]:
    done = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return tuple(done.stdout.split())


@cache
def _version(name: str, distribution: str) -> str | None:
    return environment.version(name, distribution)


def _kernel_lines() -> list[str]:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def tail(text: str, limit: int = TAIL_BYTES) -> str:
    """The last whole lines of a text, at most so many bytes."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    cut = raw[-limit:]
    return cut[cut.find(b"\n") + 1 :].decode("utf-8", "replace")


# Frames of the lab's own preloaded interpreter, below the program's, which a printed stack may show.
_OWN_FRAME = re.compile(r'[^\n]*zygote\.py", line \d+,? in [^\n]*\n?(?:(?![^\n]*File ")[^\n]*? {4}[^\n]*\n?)?')


def without_lab(text: str) -> str:
    """A text without what only the lab's own machinery put there."""
    text = _OWN_FRAME.sub("", text) if "zygote.py" in text else text
    return text.replace("/faultlab-", "/job-")


def _copy_files(plan: Plan, who: identity.Identity, work: Path) -> str:
    for file in plan.files:
        shutil.copyfile(file, work / file.name)
    if plan.file is None:
        return ""
    name = who.script if plan.file.suffix == ".py" else Path(who.script).stem + plan.file.suffix
    shutil.copyfile(plan.file, work / name)
    return name


def _worker_logs(folder: Path, plan: Plan, who: identity.Identity) -> Iterator[tuple[int, int, str, str]]:
    """(rank, node, stream, text) of torchrun's per-rank files, attempts joined in order."""
    each = max(plan.ranks // plan.nodes, 1)
    texts: dict[tuple[int, int, str], str] = {}
    for node in range(plan.nodes):
        for file in sorted((folder / str(node)).glob("*/attempt_*/*/std*.log"), key=lambda f: f.parts[-3:]):
            key = (node * each + int(file.parts[-2]), node, file.stem)
            texts[key] = texts.get(key, "") + file.read_text(encoding="utf-8", errors="replace")
    for (rank, node, stream), text in sorted(texts.items()):
        yield rank, node, stream, text


class Lab:
    """Runs plans. `zygote` starts Python programs from a preloaded interpreter where one is given and allowed."""

    def __init__(self, zygotes: Zygotes | None = None) -> None:
        self._zygotes = zygotes

    def run(self, plan: Plan, seed: int) -> Captured:
        """Run a plan once.

        Raises:
            Impossible: this machine cannot induce a fault of it.
            NoEnvironment: its interpreter is not built.
        """
        with ExitStack() as stack:
            base = Path(tempfile.mkdtemp(prefix="fl"))
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            return self._run(plan, seed, base, stack)

    def _run(self, plan: Plan, seed: int, base: Path, stack: ExitStack) -> Captured:
        token = base.name
        who = identity.identity(f"{plan.id}#{seed}", plan.nodes)
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
            done = subprocess.run(words, cwd=work, env=env, capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode:
                raise NotAsDeclared(f"{plan.id}: preparing failed: {done.stderr[-2000:]}")
        values |= faults.before(declared, work, stack)
        env |= {key: launch.fill(value, values) for key, value in plan.env.items()}
        kernel_before = len(_kernel_lines())
        outcome, streams = self._start(plan, who, values, logs, base, env, declared, token, stack)
        fresh_kernel = _kernel_lines()[kernel_before:]
        machine = {
            str(home): f"/home/{who.user}", str(temporary): "/tmp", str(workers): f"{who.folder}/logs", token: f"tmp{token[2:]}",
            str(environment.root()): f"/home/{who.user}/.cache", "https://pypi.org": "https://packages.example.org",
            sys.base_prefix: who.python, sys.prefix: who.python, str(Path(__file__).parents[2]): who.folder,
        }  # fmt: skip
        scrub = identity.scrubber(who, work, environment.folder(plan.environment), machine, _addresses())
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
        self, plan: Plan, who: identity.Identity, values: Mapping[str, str], logs: str, base: Path,
        env: Mapping[str, str], declared: tuple[Mapping[str, Any], ...], token: str, stack: ExitStack,
    ) -> tuple[runner.Outcome, list[Stream]]:  # fmt: skip
        work = base / "work"
        members: list[runner.Member] = []
        watching = runner.Watch(members, faults.during(declared), token, work, base / "notes", base / "logs")
        stack.callback(watching.close)
        many = len(launch.starts(plan, who, values, logs, base / "logs")) > 1
        console: tuple[int, int] | None = None
        if logs == "console" and many:
            read, write = os.pipe()
            console = (read, write)
            watching.add(os.fdopen(read, "rb"), None, "stdout")
        for start in launch.starts(plan, who, values, logs, base / "logs"):
            steps = faults.inside(declared, start.rank, who.hosts[start.node], token, stack)
            pipes = {"stdout": console} if console else {"stdout": os.pipe()}
            if not console and not who.merged:
                pipes["stderr"] = os.pipe()
            out = pipes["stdout"][1]
            err = pipes["stderr"][1] if "stderr" in pipes else out
            full = {**env, **start.env}
            process: runner.Process
            if self._zygotes is not None and start.python and plan.preload and not plan.fresh:
                process = self._zygotes.start(plan.environment, plan.preload, start, full, work, steps, out, err)
            else:
                process = runner.start_fresh(start, full, work, steps, out, err)
            member = runner.Member(start, process)
            members.append(member)
            if not console:
                for name, pipe in pipes.items():
                    os.close(pipe[1])
                    watching.add(os.fdopen(pipe[0], "rb"), member, name)
        if console:
            os.close(console[1])
        outcome = runner.watch(members, watching, token, base / "notes", plan.timeout_s)
        streams = []
        if console:
            streams.append(Stream(None, who.hosts[0], "stdout", "\n".join(outcome.shared)))
        for member in members:
            for name, lines in member.lines.items():
                if lines or not console:
                    streams.append(Stream(member.start.rank, who.hosts[member.start.node], name, "\n".join(lines)))
        for rank, node, name, text in _worker_logs(base / "logs", plan, who) if logs == "ranks" else ():
            streams.append(Stream(rank, who.hosts[node], name, text.rstrip("\n")))
        return outcome, streams


_LAUNCHER_PREFIX = re.compile(r"^(?:\[[\w/-]+\]:?\s?|\d+: )*")


def _is_frame(line: str) -> bool:
    """Whether a line is a traceback's own (a frame, the code it echoes) or a warning: never where a failure is told."""
    return _LAUNCHER_PREFIX.sub("", line)[:1] in {" ", "\t", "^"} or "Warning:" in line


def find_root(plan: Plan, streams: Sequence[Stream], kernel: Sequence[str]) -> tuple[int | None, str | None]:
    """The rank and the line where the failure began, as the streams show them; a line that only echoes code is the
    last choice.

    Raises:
        NotAsDeclared: the declared line is nowhere to be found.
    """
    root = plan.root
    if root.line is None:
        return root.rank, None
    if root.where == "launcher":
        wanted = [s for s in streams if s.rank is None] or list(streams)
    elif root.where == "any" or root.rank is None:
        wanted = list(streams)
    else:
        wanted = [s for s in streams if s.rank == root.rank] or [s for s in streams if s.rank is None]
    lines = [line for stream in wanted for line in stream.text.split("\n") if root.line.search(line)]
    lines += [line for line in kernel if root.where != "rank" and root.line.search(line)]
    for line in sorted(lines, key=_is_frame):
        return root.rank, line.strip("\r ")
    shown = "\n".join(f"--- {s.rank} {s.name}\n{s.text[-1500:]}" for s in streams)
    raise NotAsDeclared(f"{plan.id}: no line matches {root.line.pattern!r}\n{shown}")


def relabel(case_: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """A captured case under its plan's present declaration: labels, kind and root; what was captured stays.

    Raises:
        NotAsDeclared: the declared line is not in it.
    """
    event = json.loads(json.dumps(case_["event"]))
    for log in event["logs"]:
        log["tail"] = without_lab(log["tail"])
    for one in event.get("node_events", ()):
        one["text"] = without_lab(one["text"])
    streams = [Stream(log["rank"], log["node"], log["stream"], log["tail"]) for log in event["logs"]]
    rank, line = find_root(plan, streams, [one["text"] for one in event.get("node_events", ())])
    labels = {**plan.labels, "root_rank": rank, "root_line": line}
    provenance = {**case_["provenance"], "path": plan.path}
    return {**case_, "group": plan.path, "kind": plan.kind, "event": event, "labels": labels, "provenance": provenance}


def status(captured: Captured) -> tuple[str, int | None, int | None]:
    """(status, exit code, signal) as a scheduler would tell the run's end.

    Raises:
        NotAsDeclared: it did not fail.
    """
    plan, out, who = captured.plan, captured.outcome, captured.who
    if out.timed_out:
        return (plan.status if plan.status in {"hung", "timeout", "cancelled"} else "timeout"), None, None
    if out.code == 0 and plan.status == "failed":
        shown = "\n".join(f"--- {s.rank} {s.name}\n{s.text[-1500:]}" for s in captured.streams)
        raise NotAsDeclared(f"{plan.id}#{captured.seed}: it ended well\n{shown}")
    killed_by_memory = any("killed process" in line.lower() for line in captured.kernel)
    told = "out_of_memory" if killed_by_memory and who.scheduler is not None else plan.status
    if out.code >= 0:
        return told, out.code, None
    if who.scheduler in {"kubernetes", "slurm"}:
        return told, 128 - out.code, None
    return told, None, -out.code


def _event(captured: Captured) -> dict[str, Any]:
    plan, who, out = captured.plan, captured.who, captured.outcome
    told, code, number = status(captured)
    started, ended = (datetime.fromtimestamp(moment, tz=UTC) for moment in (out.started, out.ended))
    gpus = plan.ranks if who.gpu_type and plan.ranks > 1 else None
    event: dict[str, Any] = {
        "schema": "job-completion/1",
        "cluster": who.cluster,
        "job_id": who.job_id,
        "attempt": 0,
        "name": who.project,
        "user": who.user,
        "team": who.team,
        "queue": who.queue,
        "framework": plan.framework or None,
        "status": told,
        "exit_code": code,
        "signal": number,
        "scheduler": who.scheduler,
        "started_at": started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "ended_at": ended.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "gpus": gpus,
        "gpu_type": who.gpu_type if gpus else None,
        "time_limit_s": int(plan.timeout_s) if out.timed_out else None,
        "nodes": list(who.hosts),
        "logs": [
            {"rank": s.rank, "node": s.node, "stream": s.name, "tail": tail(s.text)} for s in captured.streams
        ],
    }
    if captured.kernel:
        event["node_events"] = [
            {"at": event["ended_at"], "node": who.hosts[0], "source": "kernel", "text": line} for line in captured.kernel
        ]
    return {key: value for key, value in event.items() if value is not None}


def case(captured: Captured) -> dict[str, Any]:
    """The labelled-case/1 object of a run.

    Raises:
        NotAsDeclared: the run did not fail as declared.
    """
    plan = captured.plan
    event = _event(captured)
    rank, line = find_root(plan, captured.streams, captured.kernel)
    name = f"lab-{plan.family}-{plan.name}-{plan.variant}-{captured.seed}"
    return {
        "id": name,
        "group": plan.path,
        "kind": plan.kind,
        "event": event,
        "labels": {**plan.labels, "root_rank": rank, "root_line": line},
        "provenance": {
            "origin": "captured",
            "program": plan.program,
            "variant": plan.variant,
            "run": f"{plan.id}#{captured.seed}",
            "path": plan.path,
            "framework": plan.framework or None,
            "version": _version(plan.environment, plan.distribution),
            "launcher": plan.launcher,
            "ranks": plan.ranks,
            "seed": captured.seed,
            "logs": captured.logs,
            "when": datetime.fromtimestamp(captured.outcome.started, tz=UTC).date().isoformat(),
        },
    }


def line_of(case_: Mapping[str, Any]) -> str:
    """A case as one JSON line."""
    return json.dumps(case_, ensure_ascii=False, separators=(",", ":"))
