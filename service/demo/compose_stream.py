"""Generates the bundled stream of job completions from the corpus; run manually after changes of the corpus.

usage: python -m service.demo.compose_stream

The stream covers four weeks of a fleet. The shares of failure causes follow Gao et al. In addition there are an outage
of a shared service that affects many users, a node that repeatedly loses a GPU, a recurring bug of one user, and a
failure group that reappears after two weeks. Labels only select the cases: the stream contains job completions without
labels, with times relative to the moment of playing. Each line is the content of a failed job ({"case": ...}), or a job
that refers to such content by its number ({"job": ..., "case": n}).
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import zstandard

from classifiers import taxonomy
from classifiers.composition import training_cases
from classifiers.data.labelled_cases import LabelledCase

TARGET = Path(__file__).with_name("stream.jsonl.zst")
DAY_S = 24 * 3600
DAYS = 28
SUCCEEDED = 130  # a day
FAILED = 22  # a day, in addition to the scenarios below
WEEKEND = 0.4  # share of a weekday's jobs
LEMON = "gpu018"
TEAMS = {
    "vision": ("ana", "bo", "chen"),
    "speech": ("dana", "eli", "farid"),
    "language": ("gita", "hugo", "ines", "jun"),
    "robotics": ("kofi", "lena"),
}
QUEUES = ("h200", "a100", "debug")
NAMES = ("vit-g", "whisper-ft", "llm-7b-sft", "diffuser", "rl-arm", "retriever", "asr-ctc", "moe-small", "detr", "eval")
LONGEST = 24_000  # maximum characters of a case's logs
OWN = frozenset({"event_id", "started_at", "ended_at", "submitted_at", "schema", "nodes", "checkpoint"})


class Fleet:
    """Jobs with owners, nodes and times; all random choices use one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 -- demo data, not a secret
        self.number = 884_000
        self.nodes = [f"gpu{number:03d}" for number in range(1, 65)]
        self.cases: dict[str, int] = {}
        self.contents: list[dict[str, Any]] = []

    def job(self, ago_s: int, nodes: int, ran_s: float = 7.5) -> dict[str, Any]:
        """Return the fields of any job; `ran_s` is the logarithm of its median run time in seconds."""
        self.number += self.rng.randint(1, 9)
        team = self.rng.choice(sorted(TEAMS))
        per_node = self.rng.choice((1, 4, 8, 8))
        return {
            "cluster": "orion",
            "job_id": str(self.number),
            "attempt": 0,
            "name": self.rng.choice(NAMES),
            "user": self.rng.choice(TEAMS[team]),
            "team": team,
            "queue": self.rng.choice(QUEUES),
            "scheduler": "slurm",
            "nodes": self.rng.sample(self.nodes, nodes),
            "gpus": nodes * per_node,
            "ended_ago_s": ago_s,
            "ran_s": int(min(DAY_S * 2, self.rng.lognormvariate(ran_s, 1.3))),
        }

    def failed(self, case: LabelledCase, ago_s: int, nodes: Sequence[str] = (), ran_s: float = 7.0) -> dict[str, Any]:
        """Return a case of the corpus as a job of the fleet; the player inserts the fleet's node names."""
        known = [node for node in case.event.get("nodes", []) if isinstance(node, str)]
        job = self.job(ago_s, max(1, min(8, len(known))), ran_s)
        if nodes:
            job["nodes"] = [
                *nodes,
                *[node for node in job["nodes"] if node not in nodes][: len(job["nodes"]) - len(nodes)],
            ]
        if case.event.get("gpus"):
            job["gpus"] = case.event["gpus"]
        if case.id not in self.cases:
            self.cases[case.id] = len(self.contents)
            kept = {name: value for name, value in case.event.items() if name not in OWN and name not in job}
            self.contents.append({"case": kept, "nodes": known})
        return {"job": job, "case": self.cases[case.id]}


def compose(seed: int = 7) -> list[dict[str, Any]]:
    """Return the cases, then the jobs of the four weeks, oldest first."""
    fleet = Fleet(seed)
    rng = fleet.rng
    by_cause: dict[str, list[LabelledCase]] = defaultdict(list)
    for case in training_cases.packaged():
        if len(log_text(case)) < LONGEST:
            by_cause[case.labels.best["cause"] or ""].append(case)
    causes = {code: entry.share or 0.1 for code, entry in taxonomy.load().causes.items() if by_cause[code]}
    # Failures recur on a platform: each cause uses only a few of its cases.
    repertoire = {code: rng.sample(by_cause[code], min(len(by_cause[code]), 12)) for code in causes}
    jobs: list[dict[str, Any]] = []
    for day in range(DAYS):
        busy = WEEKEND if day % 7 in (5, 6) else 1.0
        for _ in range(round(SUCCEEDED * busy)):
            ended = day * DAY_S + rng.randint(60, DAY_S)
            jobs.append(
                {"job": fleet.job(ended, rng.choice((1, 1, 1, 2, 4, 8))) | {"status": "succeeded"}, "case": None}
            )
        drawn = rng.choices(list(causes), weights=list(causes.values()), k=round(FAILED * busy))
        jobs.extend(
            fleet.failed(rng.choice(repertoire[cause]), day * DAY_S + rng.randint(300, DAY_S)) for cause in drawn
        )
    jobs.extend(_stories(fleet, by_cause))
    jobs.sort(key=lambda one: -int(one["job"]["ended_ago_s"]))
    return [*fleet.contents, *jobs]


def log_text(case: LabelledCase) -> str:
    """Return a case's logs as one text."""
    return "\n".join(str(log.get("tail", "")) for log in case.event.get("logs", ()))


def _stories(fleet: Fleet, by_cause: dict[str, list[LabelledCase]]) -> list[dict[str, Any]]:
    rng = fleet.rng
    hour = 3600
    lemon = rng.choice([case for case in by_cause["HW.GPU.2"] if "Xid" in log_text(case) and "79" in log_text(case)])
    outage = rng.choice(
        [case for case in by_cause["SYS.5"] if "Stale file handle" in log_text(case) or "503" in log_text(case)]
    )
    bug = rng.choice(
        [case for case in by_cause["USER.1"] if "Traceback" in log_text(case) and "KeyError" in log_text(case)]
    )
    # The faulty node: rare failures at first, then daily; long jobs, so that it has the highest cost.
    lost = [25, 21, 17, 13, 11, 9, 7, 6, 5, 4, 3.2, 2.4, 1.3, 0.8, 0.4, 0.1]
    events = [fleet.failed(lemon, int(days * DAY_S) + 600, [LEMON], 10.0) for days in lost]
    # Last week's outage: failures of all teams within half an hour.
    events += [fleet.failed(outage, 8 * DAY_S + rng.randint(0, 1800), (), 9.0) for _ in range(38)]
    # A bug of one user today.
    again = [fleet.failed(bug, 7 * hour - 900 * number) for number in range(6)]
    for one in again:
        one["job"] |= {"user": "hugo", "team": "language", "name": "llm-7b-sft"}
    # A failure group that reappears after more than two weeks.
    back = rng.choice(by_cause["SYS.1"])
    events += [fleet.failed(back, int(days * DAY_S)) for days in (27, 26.5, 26, 25.8, 1.1, 0.6, 0.3)]
    return events + again


def main() -> None:
    """Write the stream."""
    made = compose()
    lines = b"\n".join(orjson.dumps(line) for line in made)
    TARGET.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines))
    jobs = sum("job" in line for line in made)
    print(f"{TARGET.name}: {jobs} job completions, {TARGET.stat().st_size // 1024} KiB")  # noqa: T201


if __name__ == "__main__":
    main()
