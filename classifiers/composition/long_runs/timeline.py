"""The timeline of one long run: start, training, and the lines of ranks and launcher with their times.

Templates of routine lines are in routine_lines.toml.
"""

import random
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from classifiers.composition.long_runs.failure_kinds import LongRunKind
from classifiers.composition.synthetic_values import SyntheticValues

PER_LINE = 0.0004  # seconds between the lines of one block: blocks of ranks that write at the same time are interleaved


@cache
def templates() -> dict[str, Any]:
    """Return the content of routine_lines.toml."""
    return tomllib.loads((Path(__file__).parent / "routine_lines.toml").read_text(encoding="utf-8"))


def lost_peer_messages(framework: str, *, waited: bool) -> list[str]:
    """Return the messages of a framework's ranks when a peer has ended or, with `waited`, does not answer."""
    data = templates()
    names = data["waited" if waited else "closed"][framework]
    return [data["reactions"][name] if name else "" for name in names]


@dataclass(slots=True)
class LogStyle:
    """The log style of one job: report of a step, prefix of its logger, and whether every rank logs."""

    report: str
    stamp: str
    mark: str
    everyone: bool

    @classmethod
    def draw(cls, rng: random.Random) -> "LogStyle":
        """Draw a style; if every rank logs, the prefix usually names the rank."""
        everyone = rng.random() < 0.5
        loggers = templates()["loggers"]
        ranked = [logger for logger in loggers if "{r}" in logger[1]]
        stamp, mark = rng.choice(ranked if everyone and rng.random() < 0.6 else loggers)
        return cls(rng.choice(templates()["reports"]), stamp, mark, everyone)

    def line(self, at: datetime, rank: int, pid: int, words: str) -> str:
        """Return a message in the logger's format."""
        time = at.strftime(self.stamp) if self.stamp else ""
        if ",%f" in self.stamp:
            time = time[:-3]
        return self.mark.format(t=time, r=rank, pid=pid) + words

    def step(self, rng: random.Random, number: int, total: int) -> str:
        """Return the report of one step."""
        done = number / max(1, total)
        return self.report.format(
            s=number, total=total, loss=6.5 - 4 * done + rng.uniform(-0.2, 0.2), rate=rng.uniform(0.4, 9), e=int(done * 9),
            mem=rng.uniform(20, 78), lr=3e-4 * (1 - done) + 1e-6, ms=rng.uniform(90, 9000), samples=number * 512,
            samples2=total * 512, epoch=done * 3, pct=int(100 * done), tokens=rng.randint(2000, 90000),
            bar="█" * int(10 * done),
        )  # fmt: skip


@dataclass(slots=True)
class Line:
    """One line with its time. `rank` is None for a launcher or agent, whose node is `host`."""

    at: float
    rank: int | None
    text: str
    is_root: bool = False
    host: str | None = None


@dataclass(slots=True)
class Run:
    """A run during its composition."""

    rng: random.Random
    kind: LongRunKind
    framework: str
    launcher: str
    size: int
    root: int
    synthetic: SyntheticValues
    hosts: list[str]
    ips: list[str]
    pids: list[int]
    local: list[int]
    per_node: int
    begin: datetime
    lines: list[Line] = field(default_factory=list)
    skew: list[float] = field(default_factory=list)

    def stamp(self, at: float, rank: int | None) -> datetime:
        """Return the time of the clock of a rank's node."""
        return self.begin + timedelta(seconds=at + (self.skew[rank] if rank is not None else 0))

    def add_lines(
        self, at: float, rank: int | None, text: str, *, is_root: bool = False, host: str | None = None
    ) -> float:
        """Add the lines of a text, starting at a time. Returns the time after the last line."""
        for line in text.split("\n"):
            self.lines.append(Line(at, rank, line, is_root=is_root, host=host))
            at += PER_LINE * self.rng.uniform(0.2, 3)
        return at

    def fill(self, template: str, at: float, rank: int, **more: Any) -> str:
        """Fill a template of routine_lines.toml with the values of a rank at a time."""
        rng, when = self.rng, self.stamp(at, rank)
        peer = rng.randrange(self.size)
        values: dict[str, Any] = {
            "r": rank, "r1": (rank + 1) % self.size, "n": self.size, "g": self.local[rank], "host": self.hosts[rank],
            "ip": self.ips[rank], "pid": self.pids[rank], "pid2": self.pids[rank] + rng.randint(90, 900),
            "ln": rng.randint(40, 2400), "hexa": f"{rng.getrandbits(16):04x}", "hexb": f"{rng.getrandbits(32):08x}",
            "glog": f"{when:%m%d %H:%M:%S}.{when.microsecond:06d}",
            "glogn": f"{when:%m%d %H:%M:%S}.{when.microsecond:06d}{rng.randint(100, 999)}",
            "tsf": f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond:06d}",
            "tsm": f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}", "net": rng.choice(["IB", "Socket"]),
            "port": rng.randint(32768, 60999), "peerhost": self.hosts[peer], "root": self.root, "tag": "",
            **{name: self.synthetic.get(name) for name in ("pkg", "wd", "script", "svc", "ckpt")},
        }  # fmt: skip
        return template.format(**{**values, **more})


def draw(kind: LongRunKind, framework: str, launcher: str, synthetic: SyntheticValues) -> Run:
    """Draw size, nodes, processes and clocks of a run."""
    rng = synthetic.rng
    per_node = rng.choice([2, 4, 4, 8, 8])
    nodes = rng.choice([1, 1, 2, 2, 4] if kind.how != "lost" else [2, 2, 4])
    size = per_node * nodes
    if launcher in {"pods", "docker", "kubectl", "stern"}:
        size, per_node = min(size, 8), 1
    names = list(dict.fromkeys(synthetic.get(f"node{10 + index}") for index in range(90)))[: max(1, size // per_node)]
    ips = [synthetic.get(f"ip{10 + index}") for index in range(len(names))]
    root = rng.randrange(size) if kind.how != "lost" else rng.randrange(per_node, size)
    base = rng.randint(900, 3_900_000)
    clock = [rng.choice([0.0, 0.0, 0.02, -0.3, 1.7]) for _ in names]
    run = Run(
        rng=rng, kind=kind, framework=framework, launcher=launcher, size=size, root=root, synthetic=synthetic,
        hosts=[names[rank // per_node] for rank in range(size)], ips=[ips[rank // per_node] for rank in range(size)],
        pids=[base + 9 * rank + rng.randint(0, 6) for rank in range(size)], local=[r % per_node for r in range(size)],
        per_node=per_node, begin=synthetic.now,
        skew=[clock[rank // per_node] for rank in range(size)],
    )  # fmt: skip
    synthetic.known |= {
        "rank": str(root),
        "lrank": str(run.local[root]),
        "node": run.hosts[root],
        "rpid": str(run.pids[root]),
    }
    return run


def add_training(run: Run, steps: int, pace: float) -> float:
    """Compose start and training. Returns the time of the failure."""
    rng = run.rng
    scene = "pytorch" if run.framework == "gloo" else run.framework
    style = LogStyle.draw(rng)
    starting = templates()["start"]["pytorch" if scene == "ray" else scene]
    at = 0.0
    chatty = rng.random()
    for rank in range(run.size):
        when = rng.uniform(0, 3)
        for text in rng.sample(starting, min(len(starting), rng.randint(0, 3))):
            when = run.add_lines(when, rank, run.fill(text, when, rank)) + rng.uniform(0, 1)
        if scene in {"pytorch", "deepspeed"} and run.framework != "gloo" and chatty < 0.4:
            for text in templates()["nccl"]:
                when = run.add_lines(when, rank, run.fill(text, when, rank))
        if run.launcher == "ray":
            words = f"Setting up process group for: env:// [rank={rank}, world_size={run.size}]"
            when = run.add_lines(when, rank, words) if rank == 0 or rng.random() < 0.7 else when
        elif rng.random() < 0.5 and (style.everyone or rank == 0):
            run.add_lines(
                when, rank, style.line(run.stamp(when, rank), rank, run.pids[rank], f"rank {rank} of {run.size} ready")
            )
        at = max(at, when)
    logging_ranks = range(run.size) if style.everyone else range(1)
    first = rng.randint(0, 20_000)
    for number in range(steps):
        at += pace * rng.uniform(0.8, 1.3)
        for rank in logging_ranks:
            when = at + rng.uniform(0, min(pace, 0.2))
            words = style.step(rng, first + number, first + steps + 900)
            run.add_lines(when, rank, style.line(run.stamp(when, rank), rank, run.pids[rank], words))
        if rng.random() < 0.02:
            rank = rng.randrange(run.size)
            text = run.fill(rng.choice(templates()["harmless"]), at, rank)
            run.add_lines(at + 0.01, rank, style.line(run.stamp(at, rank), rank, run.pids[rank], text))
    run.synthetic.known["step"] = str(first + steps)
    return at + pace * rng.uniform(0.1, 0.9)


def traceback_lines(run: Run, *, tagged: bool) -> list[str]:
    """Return the lines of a traceback without the last line."""
    rng, get = run.rng, run.synthetic.get
    mark = f"[rank{run.root}]: " if tagged else ""
    lines = ["Traceback (most recent call last):"]
    frames = [
        (f"{get('wd')}/{get('script')}", "<module>", "main()"),
        (f"{get('wd')}/{get('script')}", "main", "trainer.fit(model, loader)"),
        (f"{get('wd')}/engine/loop.py", "fit", "for step, batch in enumerate(loader):"),
        (f"{get('pkg')}/torch/utils/data/dataloader.py", "__next__", "data = self._next_data()"),
        (f"{get('pkg')}/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)"),
        (f"{get('wd')}/models/blocks.py", "forward", "h = self.proj(h) + self.bias"),
        (f"{get('wd')}/data/sets.py", "__getitem__", "return self.parse(self.rows[key])"),
        (f"{get('wd')}/engine/state.py", "save", "self.writer.write(state)"),
    ]
    for path, name, code in sorted(rng.sample(frames, rng.randint(2, 6)), key=frames.index):
        lines += [f'  File "{path}", line {rng.randint(9, 1900)}, in {name}', f"    {code}"]
    return [mark + line for line in lines]
