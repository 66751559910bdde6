"""Composes one long run: training, failure, reactions, launcher; then writes it as the logs that an operator sees."""

import random
from datetime import timedelta
from typing import Any

from classifiers.composition.long_runs import closing, launcher_reports, timeline
from classifiers.composition.long_runs.failure_kinds import LongRunKind
from classifiers.composition.long_runs.timeline import Line, Run
from classifiers.composition.synthetic_values import SyntheticValues

OPERATIONS = ("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "COALESCED")
KEEPS_GOING = frozenset({"srun", "srun-l", "srun-files", "pods", "kubectl", "stern", "docker", "pdsh"})
STEPS = (20, 60, 150, 400, 900, 1500)


def compose(kind: LongRunKind, seed: str, most: int = 1_500) -> dict[str, Any]:
    """Return one labelled case of a kind with at most `most` steps; the same seed gives the same case."""
    rng = random.Random(seed)
    synthetic = SyntheticValues(rng)
    framework = rng.choice(kind.frameworks)
    launcher = rng.choice(launcher_reports.LAUNCHERS[framework])
    run = timeline.draw(kind, framework, launcher, synthetic)
    steps, pace = min(most, rng.choice(STEPS)), rng.choice([0.2, 0.8, 3.0, 12.0])
    if run.size > 8:
        steps = min(steps, 400)
    at = timeline.add_training(run, steps, pace)
    node_lines = _fail(run, at, pace)
    if kind.how == "lost":
        failed = {rank for rank in range(run.size) if run.hosts[rank] == run.hosts[run.root]}
        run.root = min(failed)
    else:
        failed = {run.root}
    end, codes, seen = _add_reactions(run, at, failed)
    if seen:
        closing.close(run, closing.RunEnd(end, codes, seen))
    event, root_line = _write(run, at)
    if node_lines and rng.random() < 0.6:
        event["node_events"] = [{"node": run.hosts[run.root], "source": "kernel", "text": line} for line in node_lines]
        if kind.how in {"kill", "hang", "slow"}:
            root_line = None
    finish = run.begin + timedelta(seconds=end + 5)
    event |= {
        "schema": "job-completion/1", "cluster": synthetic.get("cluster"), "job_id": synthetic.get("job"), "attempt": 0,
        "status": kind.status, "started_at": f"{run.begin:%Y-%m-%dT%H:%M:%SZ}", "ended_at": f"{finish:%Y-%m-%dT%H:%M:%SZ}",
    }  # fmt: skip
    if rng.random() < 0.6:
        event["exit_code"] = 1 if kind.how != "kill" or kind.code < 0 else kind.code
        event["gpus"] = run.size
    labels: dict[str, Any] = {}
    for axis, label in kind.axes.items():
        labels[axis] = label
        if len(kind.allowed[axis]) > 1:
            labels[f"{axis}_ok"] = list(kind.allowed[axis])
    labels |= {"root_rank": run.root, "root_line": root_line}
    return {
        "schema": "labelled-case/1", "id": f"long-{seed}", "group": f"long-{kind.name}", "kind": f"long-{kind.name}",
        "event": event, "labels": labels,
        "provenance": {"origin": "composed", "program": f"long/{kind.how}", "framework": framework, "launcher": launcher,
                       "ranks": run.size},
    }  # fmt: skip


def _fail(run: Run, at: float, pace: float) -> list[str]:
    """Add the lines of the first failing rank. Returns those of its node."""
    rng, kind, synthetic = run.rng, run.kind, run.synthetic
    synthetic.now = run.stamp(at, run.root)
    node = [synthetic.fill(kind.node)] if kind.node else []
    if kind.before:
        run.add_lines(at, run.root, synthetic.fill(kind.before))
        if kind.how == "slow":
            for number in range(1, 4):
                run.add_lines(at + 20 * number, run.root, synthetic.fill(kind.before))
    if kind.texts:
        text = rng.choice(kind.texts).strip("\n")
        tagged = run.framework in {"pytorch", "gloo", "deepspeed", "ray"} and rng.random() < 0.5
        trace = timeline.traceback_lines(run, tagged=tagged)
        mark = f"[rank{run.root}]: " if tagged else ""
        lines: list[str] = []
        for raw in [*trace, ">>" + text] if kind.trace else text.split("\n"):
            if raw == "~trace":
                lines += trace
            elif raw.startswith(">>"):
                lines.append(">>" + (mark if kind.trace else "") + synthetic.fill(raw[2:]))
            else:
                lines.append(raw if raw in trace else mark * raw.startswith("Runtime") + synthetic.fill(raw))
        for line in lines:
            first = line.startswith(">>")
            run.add_lines(at, run.root, line.removeprefix(">>"), is_root=first)
            at += timeline.PER_LINE * rng.uniform(0.2, 2)
    del pace
    return node


def _add_reactions(run: Run, at: float, failed: set[int]) -> tuple[float, dict[int, int], list[tuple[float, int]]]:
    """Add the reactions of other ranks. Returns the time of the end, exit codes, and (time, rank) of each end."""
    rng, how = run.rng, run.kind.how
    waits = how in {"hang", "slow"} or (how == "lost" and rng.random() < 0.7)
    quick = not waits and run.launcher not in KEEPS_GOING and rng.random() < 0.5
    codes: dict[int, int] = dict.fromkeys(failed, run.kind.code if how in {"crash", "kill", "lost"} else -15)
    seen: list[tuple[float, int]] = [(at + rng.uniform(0.01, 0.6), rank) for rank in sorted(failed)]
    if waits:
        seen = []
    others = [rank for rank in range(run.size) if rank not in failed]
    reactions = timeline.templates()["reactions"]
    text = rng.choice(timeline.lost_peer_messages(run.framework, waited=waits))
    tmo = rng.choice([30, 60, 600, 1800]) if run.framework == "gloo" else rng.choice([600, 1800, 1800, 300])
    if waits and run.framework in {"jax", "tensorflow"}:
        tmo = rng.choice([60, 100, 300])
    delay = tmo if waits else rng.uniform(0.02, 2)
    if not waits and run.framework == "jax":
        delay = rng.choice([10, 100])
    if waits and run.framework == "horovod":
        for number in range(1, rng.randint(3, 12)):
            run.add_lines(
                at + 60 * number,
                0 if 0 not in failed else min(others),
                run.fill(reactions["stall"], at + 60 * number, 0),
            )
    end = at + delay + (60 * 12 if waits and run.framework == "horovod" else 0)
    seq = rng.randint(30, 90_000)
    shared = {
        "seq": seq, "last": seq + rng.randint(0, 3), "done": seq - 1, "op": rng.choice(OPERATIONS), "tmo": tmo * 1000,
        "numel": rng.randint(1, 90_000_000), "speaker": others[0],
    }  # fmt: skip
    reacting = others if waits else rng.sample(others, rng.choice([len(others), len(others), max(1, len(others) // 2)]))
    if quick and rng.random() < 0.5:
        reacting = []
    last = end
    for place, rank in enumerate(sorted(reacting)):
        when = end + rng.uniform(0, 1.5 if waits else 0.4)
        reaction = text
        if text == reactions["timeout_new"] and place and rng.random() < 0.3:
            reaction, when = reactions["dump"], when + 0.5
        if text == reactions["jax"] and rank == 0:
            run.add_lines(when - 0.2, rank, run.fill(reactions["jax_leader"], when - 0.2, rank))
        if reaction:
            tag = f"[rank{rank}]: " if seq % 2 else ""
            reaction = run.fill(reaction, when, rank, **shared, tag=tag, ran=tmo * 1000 + rng.randint(2, 900))
            last = max(last, run.add_lines(when, rank, reaction))
        codes[rank] = -6 if reaction and run.framework != "gloo" and waits else 1 if reaction else -15
        seen.append((when + rng.uniform(0.05, 1), rank))
    for rank in others:
        codes.setdefault(rank, -15)
    return last + 1, codes, sorted(seen)


def _write(run: Run, at: float) -> tuple[dict[str, Any], str | None]:
    """Return the streams of the run and the first failing line."""
    rng = run.rng
    placement = launcher_reports.Placement(run.synthetic.get("proj"), run.local, run.pids, run.ips, run.hosts)
    mark = launcher_reports.prefix_of(run.launcher, placement)
    lines = sorted(run.lines, key=lambda printed: printed.at)
    root = next((line for line in lines if line.is_root), None)
    if root is None:
        root = next((line for line in lines if line.at >= at + 0.009 and _is_about_failure(run, line)), None)
    root_line = root.text.strip() if root is not None else None

    def text(chosen: list[Line]) -> str:
        return (
            "\n".join(
                (mark(line.rank, run.stamp(line.at, line.rank)) if line.rank is not None else "") + line.text
                for line in chosen
            )
            + "\n"
        )

    if run.launcher in launcher_reports.FILES:
        own: dict[int | None, list[Line]] = {}
        for line in lines:
            own.setdefault(line.rank, []).append(line)
        logs = [
            {"rank": rank, "node": run.hosts[rank], "stream": "stderr", "tail": text(own.get(rank, []))}
            for rank in range(run.size)
        ]
        logs += [{"rank": None, "stream": "launcher", "tail": text(own[None])}] if None in own else []
        return {"logs": logs}, root_line
    if run.launcher == "torchrun-tee" and len(set(run.hosts)) > 1:
        logs = []
        for number, host in enumerate(dict.fromkeys(run.hosts)):
            of_host = [
                line
                for line in lines
                if (line.host or (run.hosts[line.rank] if line.rank is not None else None)) == host
            ]
            logs.append({"rank": None, "node": host, "stream": f"node{number}", "tail": text(of_host)})
        return {"logs": logs}, root_line
    return {"logs": [{"rank": rng.choice([None, 0]), "stream": "stderr", "tail": text(lines)}]}, root_line


def _is_about_failure(run: Run, line: Line) -> bool:
    """Return whether a line after the failure is about the failure and not a routine line."""
    words = ("error", "timeout", "timed out", "failed", "killed", "closed", "reset by peer", "exit", "died", "missing", "terminat",
             "unhealthy", "received", "stall", "reclaimed", "signal", "waiting for remainder", "failure")  # fmt: skip
    low = line.text.lower()
    return line.rank != run.root and any(word in low for word in words)
