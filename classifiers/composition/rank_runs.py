"""Composes runs of several ranks: progress, the failure of one rank, the reactions of the others and of the launcher."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from classifiers.composition.kinds import Kind
from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.composition.template_text import FilledText, RoutineLines, pick, write

OPERATIONS = ["ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "ALLTOALL_BASE", "COALESCED"]
TIMEOUTS = ["600000", "1800000", "300000", "900000", "7200000"]
SIGNALS = {
    -9: ("9 (Killed)", 137),
    -11: ("11 (Segmentation fault)", 139),
    -6: ("6 (Aborted)", 134),
    -7: ("7 (Bus error)", 135),
    -15: ("15 (Terminated)", 143),
}
# Judgement, without counts of jobs: the usual form is frequent and the other one is not rare.
APART = 0.75  # share of runs whose node events are separate from the logs
IN_ORDER = 0.85  # share of merged logs in which the failing rank's lines come first

MAX_STREAMS = 16  # ranks with a log each; the logs of more are merged, which keeps cases small (judgement)


_Tag = Callable[[int, str], str]  # writes a rank before its line


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The ranks of a run. `root`: the one that fails first. `hosts`: the nodes; `per_node` ranks each."""

    size: int
    root: int
    per_node: int
    hosts: list[str]

    def node_of(self, rank: int) -> str:
        return self.hosts[(rank // self.per_node) % len(self.hosts)]


def compose_run(
    kind: Kind, text: str, routine_lines: RoutineLines, synthetic: SyntheticValues
) -> tuple[dict[str, Any], int | None, str | None]:
    """Return one run as an event without its facts, the failing rank and the failure's first line."""
    rng = synthetic.rng
    size = rng.choice(list(kind.ranks))
    root = rng.randrange(size)
    per_node = rng.choice([1, 2, 4, 8]) if size > 1 else 1
    hosts = [synthetic.get(f"node{10 + index}") for index in range(max(1, size // per_node))]
    ranks = _Ranks(size, root, per_node, hosts)
    _bind(kind, synthetic, ranks)
    # In the first failing rank's texts, `$rank` and `$node` are that rank and its node.
    synthetic.known |= {"rank": str(root), "node": ranks.node_of(root)}
    routine = _routine(kind, routine_lines, synthetic, size)
    written = write(text, synthetic, routine_lines, kind.scene) if text else FilledText([], None)
    own = [line for part in written.parts if part.kind != "node" for line in part.lines]
    node_lines = [(part.source, line) for part in written.parts if part.kind == "node" for line in part.lines]
    synthetic.wait(rng.choice([1, 3, 10, 600]))
    after = _after(kind, routine_lines, synthetic, ranks)
    launcher = _launcher(kind, routine_lines, synthetic)
    for rank in range(size):
        routine.setdefault(rank, [])
    event: dict[str, Any] = {}
    layout = rng.choice(["streams", "streams", "merged", "merged", "tagged"])
    if layout == "streams" and size <= MAX_STREAMS:
        event["logs"] = [
            {
                "rank": rank,
                "node": ranks.node_of(rank),
                "stream": "stderr",
                "tail": "\n".join(routine[rank] + (own if rank == root else after.get(rank, []))),
            }
            for rank in range(size)
        ]
        if launcher:
            event["logs"].append({"rank": None, "stream": "launcher", "tail": "\n".join(launcher)})
    else:
        tag = _tagger(rng.choice(["srun", "mpi", "bracket"])) if layout == "tagged" else (lambda _rank, line: line)
        blocks = _in_order(synthetic, _tagged({root: own}, tag), _tagged(after, tag))
        before = [line for block in _tagged(routine, tag) for line in block]
        event["logs"] = [{"rank": 0, "stream": "stderr", "tail": "\n".join([*before, *blocks, *launcher])}]
    if node_lines:
        node = ranks.node_of(root)
        if rng.random() < APART:
            event["node_events"] = [{"node": node, "source": source, "text": line} for source, line in node_lines]
        else:
            event["logs"][-1]["tail"] += "\n" + "\n".join(f"{node} {line}" for _, line in node_lines)
    if size // per_node > 1:
        event["nodes"] = hosts
    event["gpus"] = size
    return event, root, written.root_text()


def _bind(kind: Kind, synthetic: SyntheticValues, ranks: _Ranks) -> None:
    rng, root, size, per_node = synthetic.rng, ranks.root, ranks.size, ranks.per_node
    seq = rng.randint(3, 90_000)
    code = kind.event.get("code", rng.choice([1, 1, 1, -6]))
    words, plain = SIGNALS.get(int(code), (f"{abs(int(code))}", abs(int(code))))
    synthetic.known |= {
        "root": str(root), "other": str((root + 1) % size), "world": str(size), "seq": str(seq), "seqm": str(seq - 1),
        "op": rng.choice(OPERATIONS), "numel": str(rng.randint(1, 90_000_000)), "tmo": rng.choice(TIMEOUTS),
        "code": str(code), "ucode": str(plain), "usig": words, "usignum": str(plain), "lrank": str(root % per_node),
        "rnode": ranks.node_of(root), "rpid": str(rng.randint(900, 3_000_000)),
    }  # fmt: skip


def _routine(kind: Kind, routine_lines: RoutineLines, synthetic: SyntheticValues, size: int) -> dict[int, list[str]]:
    count = synthetic.rng.choice([0, 2, 5, 12, 30, 60])
    lines: dict[int, list[str]] = {}
    for rank in range(min(size, 8)):
        noise = routine_lines.lines("noise", kind.scene, synthetic.rng.randint(0, 2), synthetic)
        lines[rank] = noise + (routine_lines.lines("progress", kind.scene, count, synthetic) if rank == 0 else [])
    return lines


def _after(kind: Kind, routine_lines: RoutineLines, synthetic: SyntheticValues, ranks: _Ranks) -> dict[int, list[str]]:
    """The reactions of other ranks, by rank."""
    if not kind.cascades:
        return {}
    texts = routine_lines.cascades[pick(synthetic.rng, list(kind.cascades))]
    victims = [rank for rank in range(ranks.size) if rank != ranks.root]
    synthetic.rng.shuffle(victims)
    reacting = victims[: synthetic.rng.choice([1, 2, len(victims), len(victims)])]
    lines: dict[int, list[str]] = {}
    kept = dict(synthetic.known)
    for rank in sorted(reacting):
        # Ids differ by rank; the collective operation is the same for all.
        for name in ("pid", "pid2", "gpu", "eport", "ln"):
            synthetic.known.pop(name, None)
        synthetic.known |= {"rank": str(rank), "node": ranks.node_of(rank)}
        filled = synthetic.fill(pick(synthetic.rng, texts))
        lines[rank] = filled.split("\n") if filled else []
    synthetic.known = kept
    return lines


def _launcher(kind: Kind, routine_lines: RoutineLines, synthetic: SyntheticValues) -> list[str]:
    if not kind.launchers:
        return []
    filled = synthetic.fill(pick(synthetic.rng, routine_lines.launchers[pick(synthetic.rng, list(kind.launchers))]))
    return filled.split("\n") if filled else []


def _tagger(style: str) -> _Tag:
    def tag(rank: int, line: str) -> str:
        if line.startswith(("[1,", f"[rank{rank}]")):
            return line
        return {"srun": f"{rank}: {line}", "mpi": f"[1,{rank}]<stderr>:{line}", "bracket": f"[rank{rank}]: {line}"}[
            style
        ]

    return tag


def _tagged(lines: dict[int, list[str]], tag: _Tag) -> list[list[str]]:
    return [[tag(rank, line) for line in own] for rank, own in lines.items()]


def _in_order(synthetic: SyntheticValues, of_root: list[list[str]], others: list[list[str]]) -> list[str]:
    """The lines of all ranks as one file has them: in order of time, sometimes with buffers that are flushed late."""
    rng = synthetic.rng
    rng.shuffle(others)
    blocks = [*of_root, *others] if rng.random() < IN_ORDER else [*others[:1], *of_root, *others[1:]]
    return [line for block in blocks for line in block]
