"""Makes the bundled stream of job completions from the corpus; run by hand when the corpus has grown.

usage: python -m service.demo.compose_stream

Failures follow the shares of Gao et al. (causes), beside them an outage that hits many users, a node that keeps losing
a GPU, and one user's bug that comes again and again. Labels choose the cases here and stay here: the stream holds
job completions only, with times counted back from the moment it is played.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import zstandard

from classifiers import dataset, taxonomy
from classifiers.dataset import LabelledCase

TARGET = Path(__file__).with_name("stream.jsonl.zst")
DAY_S = 24 * 3600
SUCCEEDED = 300
FAILED = 110
LEMON = "gpu018"
TEAMS = {
    "vision": ("ana", "bo", "chen"),
    "speech": ("dana", "eli", "farid"),
    "language": ("gita", "hugo", "ines", "jun"),
    "robotics": ("kofi", "lena"),
}
QUEUES = ("h200", "a100", "debug")
NAMES = ("vit-g", "whisper-ft", "llm-7b-sft", "diffuser", "rl-arm", "retriever", "asr-ctc", "moe-small", "detr", "eval")


class Fleet:
    """Jobs with owners, places and times; every choice from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 -- a stage set, not a secret
        self.number = 884_000
        self.nodes = [f"gpu{number:03d}" for number in range(1, 65)]

    def job(self, ago_s: int, nodes: int) -> dict[str, Any]:
        """What any job has."""
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
            "ran_s": int(min(DAY_S * 2, self.rng.lognormvariate(7.5, 1.6))),
        }


def failed(fleet: Fleet, case: LabelledCase, ago_s: int, nodes: Sequence[str] = ()) -> dict[str, Any]:
    """A case of the corpus as a job of the fleet: its nodes, in the text too, become the fleet's."""
    event = dict(case.event)
    known = [node for node in event.get("nodes", []) if isinstance(node, str)]
    job = fleet.job(ago_s, max(1, min(8, len(known))))
    if nodes:
        job["nodes"] = [*nodes, *job["nodes"][len(nodes) :]]
    text = orjson.dumps(event).decode()
    for old, new in zip(known, job["nodes"], strict=False):
        text = text.replace(old, new)
    kept = {
        name: value
        for name, value in orjson.loads(text).items()
        if name not in {*job, "event_id", "started_at", "ended_at", "submitted_at", "schema"} or name == "scheduler"
    }
    if event.get("gpus"):
        job["gpus"] = event["gpus"]
    return job | kept


def compose(seed: int = 7) -> list[dict[str, Any]]:
    """The whole day, oldest first."""
    fleet = Fleet(seed)
    rng = fleet.rng
    by_cause: dict[str, list[LabelledCase]] = defaultdict(list)
    for case in dataset.packaged():
        by_cause[case.labels.best["cause"] or ""].append(case)
    causes = {code: entry.share or 0.1 for code, entry in taxonomy.load().causes.items() if by_cause[code]}
    day = [
        fleet.job(rng.randint(60, DAY_S), rng.choice((1, 1, 1, 2, 4, 8))) | {"status": "succeeded"}
        for _ in range(SUCCEEDED)
    ]
    drawn = rng.choices(list(causes), weights=list(causes.values()), k=FAILED)
    day.extend(failed(fleet, rng.choice(by_cause[cause]), rng.randint(300, DAY_S)) for cause in drawn)
    lost = [20 * 3600, 11 * 3600, 5 * 3600, 2 * 3600]  # the lemon
    day.extend(failed(fleet, rng.choice(by_cause["HW.GPU.2"]), ago_s, [LEMON]) for ago_s in lost)
    outage = rng.choice(by_cause["SYS.5"])
    day.extend(failed(fleet, outage, 3 * 3600 + rng.randint(0, 1500)) for _ in range(14))
    bug = rng.choice(by_cause["USER.1"])
    again = [failed(fleet, bug, 7 * 3600 - 900 * number) for number in range(6)]
    day.extend(job | {"user": "hugo", "team": "language", "name": "llm-7b-sft"} for job in again)
    return sorted(day, key=lambda job: -int(job["ended_ago_s"]))


def main() -> None:
    """Write the stream."""
    jobs = compose()
    lines = b"\n".join(orjson.dumps(job) for job in jobs)
    TARGET.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines))
    print(f"{TARGET.name}: {len(jobs)} job completions, {TARGET.stat().st_size // 1024} KiB")  # noqa: T201


if __name__ == "__main__":
    main()
