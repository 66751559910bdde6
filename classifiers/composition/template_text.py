"""The template language of composed texts.

Plain lines belong to the job's log. The lines after `@rank 3`, `@launcher` or `@node kernel` belong to that rank, the
launcher or the node; `@log` returns to the job's log. `>>` marks the first line of the failure. `~progress N` and
`~noise N` are replaced by N lines of training progress or of harmless noise. `synthetic_values` explains `$name`.
"""

import random
import re
from dataclasses import dataclass, field

from classifiers.composition.synthetic_values import SyntheticValues


@dataclass(slots=True)
class Part:
    """Lines of one process or node. `rank` is None for the job's log and its launcher."""

    kind: str = "log"
    rank: int | None = None
    source: str = "kernel"
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FilledText:
    """A filled text: its parts and the position (part, index) of the failure's first line; None if it is not marked."""

    parts: list[Part]
    root: tuple[int, int] | None

    def root_text(self) -> str | None:
        """Return the failure's first line."""
        return None if self.root is None else self.parts[self.root[0]].lines[self.root[1]]


def write(text: str, synthetic: SyntheticValues, routine_lines: "RoutineLines", scene: str) -> FilledText:
    """Fill a text and assign its lines to their sources. The lines may get a launcher's prefix."""
    parts: list[Part] = [Part()]
    root: tuple[int, int] | None = None
    mark = line_prefix(text, scene, synthetic)
    for raw in text.strip("\n").split("\n"):
        first, _, rest = raw.partition(" ")
        if first == "@rank":
            parts.append(Part("rank", int(synthetic.fill(rest))))
        elif first in ("@log", "@launcher", "@node"):
            parts.append(Part(first[1:], source=rest or "kernel"))
        elif first in ("~progress", "~noise"):
            parts[-1].lines += routine_lines.lines(first[1:], scene, int(synthetic.fill(rest)), synthetic)
        else:
            is_root = raw.startswith(">>")
            line = synthetic.fill(raw.removeprefix(">>").removeprefix(" ") if is_root else raw)
            if mark and parts[-1].kind != "node" and line:
                line = synthetic.fill(mark) + line
            if is_root and root is None:
                root = (len(parts) - 1, len(parts[-1].lines))
            parts[-1].lines.append(line)
    kept = [at for at, part in enumerate(parts) if part.lines]
    if root is None and len(kept) == 1 and len(parts[kept[0]].lines) == 1:
        root = (kept[0], 0)
    where = None if root is None else (kept.index(root[0]), root[1])
    return FilledText([parts[at] for at in kept], where)


@dataclass(frozen=True, slots=True)
class RoutineLines:
    """Routine lines by scene (a framework): progress, noise, and the reactions of other ranks and of launchers."""

    scenes: dict[str, dict[str, list[str]]]
    cascades: dict[str, list[str]]
    launchers: dict[str, list[str]]

    def lines(self, role: str, scene: str, count: int, synthetic: SyntheticValues) -> list[str]:
        """Return `count` lines of a scene; the steps of progress lines increase.

        Raises:
            KeyError: the scene does not exist.
        """
        lines = self.scenes[scene][role]
        if role == "noise":
            return [synthetic.fill(synthetic.rng.choice(lines)) for _ in range(count)]
        template = synthetic.rng.choice(lines)
        step, stride = synthetic.rng.randint(1, 5000), synthetic.rng.choice([1, 1, 10, 10, 50, 100])
        total, loss = step + stride * (count + synthetic.rng.randint(30, 3000)), synthetic.rng.uniform(1.2, 7.0)
        made = []
        for _ in range(count):
            loss = max(0.05, loss * synthetic.rng.uniform(0.985, 1.006))
            step += stride
            filled = template.replace("%step", str(step)).replace("%total", str(total)).replace("%loss", f"{loss:.4f}")
            filled = filled.replace("%pct", str(100 * step // total)).replace(
                "%rate", f"{synthetic.rng.uniform(0.3, 9):.2f}"
            )
            made.append(synthetic.fill(filled))
            synthetic.wait(synthetic.rng.uniform(0.5, 20))
        return made


# Prefixes that launchers, agents and logging libraries add to lines.
MARKS = {
    "pytorch": [
        "[rank$rank]: ",
        "$rank: ",
        "$iso.$(100-999)Z ",
        "[$pod] ",
        "($gpu) ",
        "$tsm ERROR ",
        "[$node:$rank] ",
        "$node: ",
    ],
    "horovod": ["[1,$rank]<stderr>:", "[1,$rank]<stdout>:", "[$rank]<stderr>:", "[1,$rank]<stderr>: "],
    "ray": [
        "(RayTrainWorker pid=$pid, ip=$ip) ",
        "(train_fn pid=$pid) ",
        "(pid=$pid, ip=$ip) ",
        "(TorchTrainer pid=$pid) ",
    ],
    "mpi": ["[1,$rank]<stderr>:", "$rank: ", "[$node:$pid] "],
    "tensorflow": ["$iso.$(100-999)Z ", "[worker-$rank] ", "$pod: ", "$tsm - ERROR - "],
    "plain": ["$iso.$(100-999)Z ", "$node: ", "$sys $node app[$pid]: ", "[$pod] ", "$tsm ERROR ", "$hms | "],
}
NUMERIC = re.compile(r"\$\(\d+-\d+\)|\$(?:ln|pid|step|job|gpu|eport|rank|ms|uid)\d?\b")
FIXED = re.compile(r"\W+")
LONG = 60
MARKED = 0.25


def line_prefix(text: str, scene: str, synthetic: SyntheticValues) -> str | None:
    """Return a prefix for every line of a text; None for no prefix.

    A text with a long line that holds no made-up value except numbers always gets one: every installation of the software
    prints that line, and composed lines must differ from it.
    """
    plain = NUMERIC.sub("0", text)
    fixed = any("$" not in line and len(FIXED.sub(" ", line)) >= LONG for line in plain.split("\n"))
    if not fixed and synthetic.rng.random() > MARKED:
        return None
    return pick(synthetic.rng, MARKS.get(scene, MARKS["plain"]))


def pick(rng: random.Random, choices: list[str]) -> str:
    """Return one of several choices."""
    return choices[rng.randrange(len(choices))]
