"""Composes labelled cases from a kind of failure: one job each, with facts, streams, labels and provenance."""

import random
from datetime import timedelta
from typing import Any

from classifiers.composition.kinds import Kind
from classifiers.composition.rank_runs import compose_run
from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.composition.template_text import Part, RoutineLines, write

# Share of cases with facts of the scheduler; they are missing if only a log was provided (judgement).
KEEP_FACTS = 0.5
# Judgement, without counts of jobs: shares of cases whose node events stand in the log, and of those with a framework
# whose event names it. Both forms are then frequent in training.
INLINE = 0.5
TELL_FRAMEWORK = 0.6
FRAMEWORKS = {"pytorch", "deepspeed", "tensorflow", "horovod", "jax", "ray"}


def compose(kind: Kind, routine_lines: RoutineLines, seed: int) -> list[dict[str, Any]]:
    """Return all cases of one kind; the same seed gives the same cases."""
    cases = []
    texts = list(kind.texts) or [""]
    for number, text in enumerate(texts):
        for copy in range(kind.copies):
            name = f"{kind.id}-{number}-{copy}"
            rng = random.Random(f"{seed}/{name}")
            synthetic = SyntheticValues(rng)
            if kind.is_run:
                event, root_rank, root_line = compose_run(kind, text, routine_lines, synthetic)
            else:
                event, root_rank, root_line = _short(kind, text, routine_lines, synthetic)
            _facts(event, kind, synthetic, without_facts=copy % 2 == 1 or rng.random() > KEEP_FACTS)
            cases.append(_case(name, kind, event, (root_rank, root_line), seed))
    return cases


def _short(
    kind: Kind, text: str, routine_lines: RoutineLines, synthetic: SyntheticValues
) -> tuple[dict[str, Any], int | None, str | None]:
    written = write(text, synthetic, routine_lines, kind.scene)
    # Some sites collect node events separately from the job's log, others include them in it.
    inline = synthetic.rng.random() < INLINE
    logs: dict[tuple[str, int | None], list[str]] = {}
    node_events: list[dict[str, Any]] = []
    for part in written.parts:
        if part.kind == "node" and not inline:
            node_events += [{"node": synthetic.get("node"), "source": part.source, "text": line} for line in part.lines]
        else:
            logs.setdefault(_stream(part), []).extend(part.lines)
    event: dict[str, Any] = {
        "logs": [
            {"rank": rank, "stream": stream, "tail": "\n".join(lines) + synthetic.rng.choice(["", "\n"])}
            for (stream, rank), lines in logs.items()
        ]
    }
    if node_events:
        event["node_events"] = node_events
    rank = written.parts[written.root[0]].rank if written.root else None
    return event, rank, written.root_text()


def _stream(part: Part) -> tuple[str, int | None]:
    if part.kind == "rank":
        return "stderr", part.rank
    return ("launcher", None) if part.kind == "launcher" else ("stderr", 0)


def _facts(event: dict[str, Any], kind: Kind, synthetic: SyntheticValues, *, without_facts: bool) -> None:
    """Add status and times, and, unless `without_facts`, the other facts of the scheduler."""
    ended = synthetic.now + timedelta(seconds=synthetic.rng.randint(1, 40))
    started = (
        synthetic.boot
        if synthetic.boot > ended - timedelta(days=2)
        else ended - timedelta(seconds=synthetic.rng.randint(9, 170_000))
    )
    event.update(
        schema="job-completion/1",
        cluster=synthetic.get("cluster"),
        job_id=synthetic.get("job"),
        attempt=0,
        started_at=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        ended_at=f"{ended:%Y-%m-%dT%H:%M:%SZ}",
        status=kind.event["status"],
    )
    facts = {key: value for key, value in kind.event.items() if key not in ("status", "code")}
    if kind.scene in FRAMEWORKS and "framework" not in facts and synthetic.rng.random() < TELL_FRAMEWORK:
        facts["framework"] = kind.scene
    if "nodes" in facts:
        facts["nodes"] = [synthetic.get(f"node{index}") for index in range(1, int(facts["nodes"]) + 1)]
    for key, value in facts.items():
        if kind.all_facts or not without_facts:
            event.setdefault(key, synthetic.fill(value).replace("_", " ") if key == "message" else value)


def _case(
    name: str, kind: Kind, event: dict[str, Any], root: tuple[int | None, str | None], seed: int
) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    for axis in ("side", "cause", "category", "symptom", "retry"):
        labels[axis] = kind.labels[axis]
        if len(kind.accepted[axis]) > 1:
            labels[f"{axis}_ok"] = list(kind.accepted[axis])
    labels["root_rank"], labels["root_line"] = root
    return {
        "schema": "labelled-case/1",
        "id": f"composed-{name}",
        "group": f"composed-{kind.id}",
        "kind": kind.id,
        "event": event,
        "labels": labels,
        "provenance": {
            "origin": "composed",
            "program": f"kinds/{kind.file}",
            "framework": kind.scene,
            "seed": seed,
            "medium": kind.medium,
            "source": kind.source,
            **({"labelled_for": kind.labelled_for} if kind.labelled_for else {}),
        },
    }
