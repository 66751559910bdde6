"""Routine lines of ranks, and the templates of routine_lines.toml."""

import random
import tomllib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any


@cache
def templates() -> dict[str, Any]:
    """Return the content of routine_lines.toml."""
    return tomllib.loads((Path(__file__).parent / "routine_lines.toml").read_text(encoding="utf-8"))


def noticing(framework: str, *, waited: bool) -> list[str]:
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
