"""`make suspicion`: a fleet with known bad nodes, and which ranking finds them; parameters in suspicion.toml.

Jobs of many sizes run on nodes with known failure rates; large ones on their own part of the fleet. Verdicts are drawn
from the classifier's measured results on held-out kinds. Then the nodes are ranked: by the number of failed jobs, by
the number of hardware failures, by weighted failures per exposure, and by the suspicion that the service computes, with
the service's own functions. Nodes are not reserved: two jobs may use one at the same time.

usage: python -m tests.simulations.suspicion [--seeds N]
"""

import argparse
import math
import random
import tomllib
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import accumulate
from statistics import mean, stdev
from typing import Any

import orjson
from scipy.special import stdtrit

from classifiers import taxonomy
from service.nodes.counting import node_weights
from service.nodes.empirical_bayes import decayed, fit, ratio
from service.nodes.records import FleetSettings, JudgedFailure

RANKINGS = ("failed jobs", "hardware failures", "weighted failures per node-hour", "suspicion")
_END = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Result:
    """The quality of a ranking: precision among as many nodes as are bad, and area under the ROC curve."""

    precision: float
    auc: float


@cache
def parameters() -> dict[str, Any]:
    """The parameters, read from suspicion.toml."""
    return tomllib.loads(files("tests.simulations").joinpath("suspicion.toml").read_text(encoding="utf-8"))


@cache
def measured() -> dict[str, list[dict[str, Any]]]:
    """The outcomes of the classifier for each cause with their frequencies, from measured.json."""
    raw = orjson.loads(files("service.recommend").joinpath("measured.json").read_bytes())
    return {code: one["outcomes"] for code, one in raw["causes"].items() if one["outcomes"]}


@dataclass(slots=True)
class _Node:
    rate: float
    bad: bool
    failed: int = 0
    hardware: int = 0
    weighted_failures: float = 0.0
    exposure: float = 0.0


class Fleet:
    """One run of the fleet with one seed."""

    def __init__(self, seed: int, changes: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        given = parameters()
        self._given = {
            name: {**part, **(changes or {}).get(name, {})} for name, part in given.items() if name != "version"
        }
        self._random = random.Random(seed)
        fleet, rates = self._given["fleet"], self._given["rates"]
        count = int(fleet["nodes"])
        bad = set(self._random.sample(range(count), max(1, round(count * fleet["bad_share"]))))
        rate = rates["per_1000_node_days"] / 1_000 / 24
        self.nodes = [_Node(rate * (fleet["bad_times"] if n in bad else 1.0), n in bad) for n in range(count)]
        self.big = round(count * fleet["big_share"])
        self._half_life = FleetSettings().half_life / timedelta(days=1)

    def run(self) -> dict[str, Result]:
        """Run all jobs; the result of each ranking."""
        jobs = self._given["jobs"]
        total = len(self.nodes) * self._given["fleet"]["days"] * 24
        sizes, shares = jobs["sizes"], list(accumulate(jobs["shares"]))
        mean_hours = sum(size * share for size, share in zip(sizes, jobs["shares"], strict=True)) * jobs["hours"]
        for _ in range(round(total / mean_hours)):
            self._job(sizes[min(bisect(shares, self._random.random()), len(sizes) - 1)])
        return self._results()

    def _job(self, size: int) -> None:
        jobs, rates, pick = self._given["jobs"], self._given["rates"], self._random
        where = range(self.big) if size >= jobs["big_from"] else range(self.big, len(self.nodes))
        own = pick.sample(where, min(size, len(where)))
        hours = pick.expovariate(1 / jobs["hours"])
        age = pick.uniform(0, self._given["fleet"]["days"])
        hazard = sum(self.nodes[n].rate for n in own)
        broke = pick.expovariate(hazard)
        side, culprit = None, None
        if broke < hours:
            hours, side = broke, "hardware"
            culprit = pick.choices(own, [self.nodes[n].rate for n in own])[0]
        elif (chance := pick.random()) < rates["user_share"]:
            side = "user"
        elif chance < rates["user_share"] + rates["system_share"]:
            side = "system"
        left = decayed(age, self._half_life)
        for n in own:
            self.nodes[n].exposure += hours * left
        if side is not None:
            self._failed(own, side, culprit, left, age)

    def _failed(self, own: Sequence[int], side: str, culprit: int | None, left: float, age: float) -> None:
        output = self._judged(own, side, culprit, age)
        for n in own:
            self.nodes[n].failed += 1
            self.nodes[n].hardware += output.side == "hardware"
        for name, weight in node_weights(output).items():
            self.nodes[int(name)].weighted_failures += weight * left

    def _judged(self, own: Sequence[int], side: str, culprit: int | None, age: float) -> JudgedFailure:
        pick, verdicts = self._random, self._given["verdicts"]
        causes = {code: share for code, share in self._given["causes"][side].items() if code in measured()}
        truth = pick.choices(list(causes), list(causes.values()))[0]
        outcomes = measured()[truth]
        outcome = pick.choices(outcomes, [one["share"] for one in outcomes])[0]
        suspect = culprit if culprit is not None and len(own) == 1 else None
        if culprit is not None and len(own) > 1 and pick.random() < verdicts["named"]:
            suspect = pick.choice(own) if pick.random() < verdicts["named_wrong"] else culprit
        return JudgedFailure(
            id=1,
            cluster="fleet",
            job_id="1",
            ended_at=_END - timedelta(days=age),
            user=None,
            side=taxonomy.load().side_of(outcome["cause"]),
            cause=outcome["cause"],
            confidence=outcome["confidence"],
            abstained=outcome["abstained"],
            fingerprint="",
            suspect_node=None if suspect is None else str(suspect),
            nodes=tuple(str(n) for n in own),
        )

    def _results(self) -> dict[str, Result]:
        prior = fit([(node.weighted_failures, node.exposure) for node in self.nodes])
        scores = {
            "failed jobs": [float(node.failed) for node in self.nodes],
            "hardware failures": [float(node.hardware) for node in self.nodes],
            "weighted failures per node-hour": [
                node.weighted_failures / node.exposure if node.exposure else 0.0 for node in self.nodes
            ],
            "suspicion": [ratio(node.weighted_failures, node.exposure, prior).mean for node in self.nodes],
        }
        bad = [node.bad for node in self.nodes]
        return {name: Result(precision(given, bad), auc(given, bad)) for name, given in scores.items()}


def precision(scores: Sequence[float], bad: Sequence[bool]) -> float:
    """Share of bad nodes among the first, as many as there are bad ones; equal scores count in proportion."""
    wanted = sum(bad)
    edge = sorted(scores, reverse=True)[wanted - 1]
    above = [is_bad for score, is_bad in zip(scores, bad, strict=True) if score > edge]
    tied = [is_bad for score, is_bad in zip(scores, bad, strict=True) if score == edge]
    return (sum(above) + sum(tied) / len(tied) * (wanted - len(above))) / wanted


def auc(scores: Sequence[float], bad: Sequence[bool]) -> float:
    """P(a bad node ranks above a good one), ties count half."""
    ill = [score for score, is_bad in zip(scores, bad, strict=True) if is_bad]
    well = sorted(score for score, is_bad in zip(scores, bad, strict=True) if not is_bad)
    below = sum(_below(well, score) for score in ill)
    return below / (len(ill) * len(well))


def _below(ordered: Sequence[float], score: float) -> float:
    first = bisect([*ordered], score - 1e-15)
    last = bisect([*ordered], score + 1e-15)
    return first + (last - first) / 2


def compare(seeds: int, changes: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, list[Result]]:
    """Every ranking's results by seed, from 0."""
    out: dict[str, list[Result]] = {name: [] for name in RANKINGS}
    for seed in range(seeds):
        for name, result in Fleet(seed, changes).run().items():
            out[name].append(result)
    return out


def _figure(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{mean(values):.3f}"
    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
    return f"{mean(values):.3f} ± {half:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulations.suspicion")
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    fleet = parameters()["fleet"]
    print(
        f"{fleet['nodes']} nodes, {fleet['bad_share']:.1%} bad (x {fleet['bad_times']:g}), {fleet['days']:g} days, "
        f"seeds 0-{args.seeds - 1}, 95 % intervals"
    )
    print(f"{'ranking by':34}{'precision at k':>18}{'AUC':>18}")
    for name, results in compare(args.seeds).items():
        at_k, area = _figure([one.precision for one in results]), _figure([one.auc for one in results])
        print(f"{name:34}{at_k:>18}{area:>18}")


if __name__ == "__main__":
    main()
