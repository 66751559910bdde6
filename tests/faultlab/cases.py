"""Converts a run into a labelled-case/1 object with the declared labels, the onset line and the provenance."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from classifiers.redaction import redact_json
from tests.faultlab import environment, runner, synthetic_identity
from tests.faultlab.program import Plan

TAIL_BYTES = 32 * 1024


class NotAsDeclared(RuntimeError):
    """A run did not fail as its declaration states."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The complete, scrubbed output of one process to one stream."""

    rank: int | None
    node: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Captured:
    """The streams and exit status of a run, before it becomes a case."""

    plan: Plan
    seed: int
    who: synthetic_identity.Identity
    logs: str
    streams: tuple[Stream, ...]
    kernel: tuple[str, ...]
    outcome: runner.Outcome


@cache
def _version(name: str, distribution: str) -> str | None:
    return environment.version(name, distribution)


def tail(text: str, limit: int = TAIL_BYTES) -> str:
    """Return the last complete lines of a text, up to a number of bytes."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    cut = raw[-limit:]
    return cut[cut.find(b"\n") + 1 :].decode("utf-8", "replace")


# Stack frames of the lab's preloaded interpreter, which may appear below the program's frames.
_OWN_FRAME = re.compile(r'[^\n]*zygote\.py", line \d+,? in [^\n]*\n?(?:(?![^\n]*File ")[^\n]*? {4}[^\n]*\n?)?')


def without_lab(text: str) -> str:
    """Return a text without lines that come from the lab's own machinery."""
    text = _OWN_FRAME.sub("", text) if "zygote.py" in text else text
    return text.replace("/faultlab-", "/job-")


_LAUNCHER_PREFIX = re.compile(r"^(?:\[[\w/,-]+\](?:<std\w+>)?:?\s?|\d+: )*")


def _is_frame(line: str) -> bool:
    """Return whether a line is a traceback line, a warning or a launcher's summary, which is never the onset."""
    own = _LAUNCHER_PREFIX.sub("", line)[:1] in {" ", "\t", "^"}
    return own or "Warning:" in line or "ChildFailedError" in line


def find_root(plan: Plan, streams: Sequence[Stream], kernel: Sequence[str]) -> tuple[int | None, str | None]:
    """Return the rank and the line of the onset of the failure, found in the streams.

    A line that only echoes source code is the last choice.

    Raises:
        NotAsDeclared: the declared line is not found.
    """
    root = plan.root
    if root.line is None:
        return root.rank, None
    if root.where == "launcher":
        wanted = [s for s in streams if s.rank is None] or list(streams)
    elif root.where == "any" or root.rank is None:
        wanted = sorted(streams, key=lambda s: s.rank is None)  # ranks first, then their launcher
    else:
        wanted = [s for s in streams if s.rank == root.rank] or [s for s in streams if s.rank is None]
    lines = [line for stream in wanted for line in stream.text.split("\n") if root.line.search(line)]
    lines += [line for line in kernel if root.where != "rank" and root.line.search(line)]
    for line in sorted(lines, key=_is_frame):
        return root.rank, line.strip("\r ")
    shown = "\n".join(f"--- {s.rank} {s.name}\n{s.text[-1500:]}" for s in streams)
    raise NotAsDeclared(f"{plan.id}: no line matches {root.line.pattern!r}\n{shown}")


def relabel(case_: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Relabel a captured case by its plan's current declaration (labels, kind, root); captured data is unchanged.

    Raises:
        NotAsDeclared: the case does not contain the declared line.
    """
    event = json.loads(json.dumps(case_["event"]))
    for log in event["logs"]:
        log["tail"] = without_lab(log["tail"])
    for one in event.get("node_events", ()):
        one["text"] = without_lab(one["text"])
    event = redact_json(event)
    streams = [Stream(log["rank"], log["node"], log["stream"], log["tail"]) for log in event["logs"]]
    rank, line = find_root(plan, streams, [one["text"] for one in event.get("node_events", ())])
    labels = {**plan.labels, "root_rank": rank, "root_line": line}
    provenance = {**case_["provenance"], "path": plan.path}
    return {**case_, "group": plan.path, "kind": plan.kind, "event": event, "labels": labels, "provenance": provenance}


def status(captured: Captured) -> tuple[str, int | None, int | None]:
    """Return (status, exit code, signal) of the run as a scheduler would report them.

    Raises:
        NotAsDeclared: the run did not fail.
    """
    plan, out, who = captured.plan, captured.outcome, captured.who
    if out.timed_out:
        return (plan.status if plan.status in {"hung", "timeout", "cancelled"} else "timeout"), None, None
    if out.code == 0 and plan.status == "failed":
        shown = "\n".join(f"--- {s.rank} {s.name}\n{s.text[-1500:]}" for s in captured.streams)
        raise NotAsDeclared(f"{plan.id}#{captured.seed}: it ended well\n{shown}")
    killed_by_memory = any("killed process" in line.lower() for line in captured.kernel)
    result = "out_of_memory" if killed_by_memory and who.scheduler is not None else plan.status
    if out.code >= 0:
        return result, out.code, None
    if who.scheduler in {"kubernetes", "slurm"}:
        return result, 128 - out.code, None
    return result, None, -out.code


def _event(captured: Captured) -> dict[str, Any]:
    plan, who, out = captured.plan, captured.who, captured.outcome
    result, code, number = status(captured)
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
        "status": result,
        "exit_code": code,
        "signal": number,
        "scheduler": who.scheduler,
        "started_at": started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "ended_at": ended.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "gpus": gpus,
        "gpu_type": who.gpu_type if gpus else None,
        "time_limit_s": int(plan.timeout_s) if out.timed_out else None,
        "nodes": list(who.hosts),
        "logs": [{"rank": s.rank, "node": s.node, "stream": s.name, "tail": tail(s.text)} for s in captured.streams],
    }
    if captured.kernel:
        event["node_events"] = [
            {"at": event["ended_at"], "node": who.hosts[0], "source": "kernel", "text": line}
            for line in captured.kernel
        ]
    return {key: value for key, value in event.items() if value is not None}


def case(captured: Captured) -> dict[str, Any]:
    """Return the labelled-case/1 object of a run.

    Raises:
        NotAsDeclared: the run did not fail as declared.
    """
    plan = captured.plan
    event = redact_json(_event(captured))
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
    """Return a case as one JSON line."""
    return json.dumps(case_, ensure_ascii=False, separators=(",", ":"))
