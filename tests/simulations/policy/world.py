"""The simulated truth: jobs, nodes with hidden faults, outages; and how a run of a job ends in it."""

import math
from collections import defaultdict
from dataclasses import dataclass
from random import Random

from classifiers.taxonomy import RetryOutlook
from tests.simulations.policy.parameters import Parameters
from tests.simulations.policy.verdicts import Measured, Truth

NODE_GPUS = 8
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
_LEMON_FRACTION = 0.5  # a bad node fails about half of the time
_SIGMA_HOURS, _SIGMA_BUG, _SIGMA_OUTAGE = 1.3, 2.6, 0.8
_LONGEST_HOURS = 24 * 14
_NEW = "new fault"
# The causes of the simulated faults, by their definitions (Gao et al.).
_Drawn = tuple[tuple[str, ...], RetryOutlook]
_NODE: _Drawn = (("HW.GPU.", "HW.NET.1", "HW.NET.2", "HW.NET.3", "HW.NODE.1"), "helps_elsewhere")
_SERVICE: _Drawn = (("SYS.5",), "helps")
_PASSING: _Drawn = (("SYS.5", "HW.NET.4"), "helps")
_REPAIRED: _Drawn = (("SYS.1", "SYS.6"), "after_repair")


@dataclass(frozen=True, slots=True)
class Job:
    """One job; times in hours. `bug_at`: hours of work after which it always fails, if it has a bug."""

    number: int
    user: int
    gpus: int
    nodes: int
    starts: float
    needs: float
    checkpoint: float | None
    bug_at: float | None
    bug: Truth | None
    uses: frozenset[int]

    def saved(self, done: float) -> float:
        """Hours of work saved by a checkpoint."""
        return 0.0 if self.checkpoint is None else math.floor(done / self.checkpoint) * self.checkpoint


@dataclass(frozen=True, slots=True)
class Bad:
    """A node that is faulty for a time. `root` names the fault."""

    node: int
    begins: float
    ends: float
    root: str


@dataclass(frozen=True, slots=True)
class Outage:
    """An outage of something that many jobs need."""

    number: int
    begins: float
    ends: float
    truth: Truth


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended: time and finished hours of the job's work; `truth` None: the job is complete."""

    at: float
    done: float
    truth: Truth | None = None
    root: str = ""
    node: int | None = None
    over_at: float = 0.0


class World:
    """The truth of one seed, the same for every policy."""

    def __init__(self, parameters: Parameters, measured: Measured, seed: int) -> None:
        self.parameters = parameters
        self._measured = measured
        random = Random(seed)
        self.horizon = parameters["days"] * 24
        self.outages = self._outages(random)
        self.jobs = [self._job(random, number) for number in range(int(parameters["jobs"]))]
        self._bad: dict[int, list[Bad]] = defaultdict(list)
        self._faults(random)
        self._seed = seed

    def _log_normal(self, random: Random, median: float, sigma: float) -> float:
        return median * math.exp(random.gauss(0, sigma))

    def _job(self, random: Random, number: int) -> Job:
        p = self.parameters
        gpus = 1
        if random.random() >= p["one_gpu"]:
            size = 0
            while size < len(_SIZES) - 1 and random.random() < p["growth"]:
                size += 1
            gpus = _SIZES[size]
        needs = min(_LONGEST_HOURS, self._log_normal(random, p["hours"], _SIGMA_HOURS))
        checkpointed = gpus > 1 and random.random() < p["checkpointed"]
        buggy = random.random() < p["buggy"]
        bug_at = self._log_normal(random, p["bug_hours"], _SIGMA_BUG) if buggy else None
        uses = frozenset(one.number for one in self.outages if random.random() < p["outage_share"])
        return Job(
            number=number,
            user=random.randrange(int(p["users"])),
            gpus=gpus,
            nodes=max(1, gpus // NODE_GPUS),
            starts=random.uniform(0, self.horizon),
            needs=needs,
            checkpoint=p["checkpoint_hours"] if checkpointed else None,
            bug_at=None if bug_at is None or bug_at >= needs else bug_at,
            bug=self._measured.truth(random, ("USER.",), "futile") if buggy else None,
            uses=uses,
        )

    def _outages(self, random: Random) -> list[Outage]:
        p = self.parameters
        found: list[Outage] = []
        at = 0.0
        while (at := at + random.expovariate(p["outages"] / (7 * 24))) < self.horizon:
            repaired = random.random() < p["outage_repaired"]
            truth = self._measured.truth(random, *(_REPAIRED if repaired else _SERVICE))
            length = self._log_normal(random, p["outage_hours"], _SIGMA_OUTAGE)
            found.append(Outage(len(found), at, at + length, truth))
        return found

    def _faults(self, random: Random) -> None:
        p = self.parameters
        for node in range(int(p["nodes"])):
            if random.random() < p["lemons"]:
                at = 0.0
                while at < self.horizon * 2:
                    length = random.expovariate(1 / p["repair_hours"])
                    self._bad[node].append(Bad(node, at, at + length, f"lemon {node}"))
                    at += length / _LEMON_FRACTION

    def nodes_for(self, random: Random, job: Job, avoid: frozenset[int]) -> tuple[int, ...]:
        """Nodes for a run, without the excluded ones."""
        total = int(self.parameters["nodes"])
        free = [node for node in random.sample(range(total), min(total, job.nodes + len(avoid))) if node not in avoid]
        return tuple(free[: job.nodes])

    def run(self, random: Random, job: Job, begins: float, saved: float, nodes: tuple[int, ...]) -> End:
        """How a run that begins at a time with some saved work ends, on these nodes."""
        p = self.parameters
        work_from = begins + p["start_hours"]
        found = [End(work_from + job.needs - saved, job.needs)]
        if job.bug_at is not None and job.bug is not None:
            left = max(0.0, job.bug_at - saved)
            found.append(End(work_from + left, max(saved, job.bug_at), job.bug, f"bug {job.number}"))
        self._meet_outage(job, begins, found)
        self._meet_bad_nodes(random, begins, nodes, found)
        self._meet_new_faults(random, job, begins, nodes, found)
        first = min(found, key=lambda end: end.at)
        done = min(job.needs, saved + max(0.0, first.at - work_from))
        if first.truth is None or first.root.startswith("bug"):
            return first
        if first.root.startswith(_NEW) and first.node is not None and random.random() < p["faults_that_stay"]:
            ends = first.at + random.expovariate(1 / p["repair_hours"])
            bad = Bad(first.node, first.at, ends, f"fault of node {first.node} at {first.at:.3f}")
            self._bad[first.node].append(bad)
            return End(first.at, done, first.truth, bad.root, first.node, ends)
        return End(first.at, done, first.truth, first.root, first.node, first.over_at)

    def _meet_outage(self, job: Job, begins: float, found: list[End]) -> None:
        last = found[0].at
        for outage in self.outages:
            if outage.number in job.uses and outage.begins < last and outage.ends > begins:
                at = max(outage.begins, begins + self.parameters["start_hours"])
                if at < outage.ends:
                    root = f"outage {outage.number}"
                    found.append(End(at, 0.0, outage.truth, root, over_at=outage.ends))

    def _meet_bad_nodes(self, random: Random, begins: float, nodes: tuple[int, ...], found: list[End]) -> None:
        for node in nodes:
            for bad in self._bad.get(node, ()):
                at = max(begins, bad.begins) + random.expovariate(1 / self.parameters["bad_node_hours"])
                if at < bad.ends and bad.ends > begins:
                    truth = self._measured.truth(random, *_NODE)
                    found.append(End(at, 0.0, truth, bad.root, node, bad.ends))

    def _meet_new_faults(
        self, random: Random, job: Job, begins: float, nodes: tuple[int, ...], found: list[End]
    ) -> None:
        p = self.parameters
        at = begins + random.expovariate(p["node_faults"] / 1000 / 24 * job.nodes)
        if at < found[0].at:
            truth = self._measured.truth(random, *_NODE)
            found.append(End(at, 0.0, truth, f"{_NEW} at {at:.3f}", random.choice(nodes)))
        at = begins + random.expovariate(p["passing"] / 1000)
        if at < found[0].at:
            storage = random.random() < p["passing_storage"]
            truth = self._measured.truth(random, *(_SERVICE if storage else _PASSING))
            found.append(End(at, 0.0, truth, f"{'storage' if storage else 'service'} at {at:.3f}", over_at=at))

    def fork(self) -> "World":
        """A copy of the truth, in which the runs of another policy may leave their own faults."""
        other = object.__new__(World)
        other.__dict__ = {
            **self.__dict__,
            "_bad": defaultdict(list, {node: list(bad) for node, bad in self._bad.items()}),
        }
        return other

    def random(self, job: Job, run: int) -> Random:
        """The random numbers of one run of one job: the same in every policy's world."""
        return Random(f"{self._seed} {job.number} {run}")
