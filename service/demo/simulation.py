"""The simulated cluster of the demo: jobs arrive, wait for GPUs, run, fail, and are started again."""

import heapq
import math
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from service.demo import scenarios
from service.demo.jobs import End, Job, event, saved_after
from service.demo.scenarios import Scenario
from service.demo.story import Story

GPUS_PER_NODE = 8


@dataclass(slots=True)
class Fleet:
    """Free GPUs by node. Jobs up to a node's size share a node; larger jobs hold whole nodes."""

    free: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: int) -> "Fleet":
        """A fleet of empty nodes gpu001, gpu002 ..."""
        return cls({f"gpu{number:03d}": GPUS_PER_NODE for number in range(1, nodes + 1)})

    def take(self, gpus: int, *, exclude: Collection[str] = (), prefer: str | None = None) -> tuple[str, ...]:
        """Hold GPUs; returns their nodes, none if the job has to wait.

        Args:
            gpus: the size of the job.
            exclude: nodes that the job avoids.
            prefer: a node that is used if it has room.
        """
        share = min(gpus, GPUS_PER_NODE)
        count = -(-gpus // GPUS_PER_NODE)
        # The fullest nodes first, so that whole nodes stay free for large jobs.
        fitting = sorted(
            (node for node, left in self.free.items() if left >= share and node not in exclude),
            key=lambda node: (node != prefer, self.free[node], node),
        )
        chosen = tuple(fitting[:count])
        if len(chosen) < count:
            return ()
        for node in chosen:
            self.free[node] -= share
        return chosen

    def give_back(self, nodes: Collection[str], gpus: int) -> None:
        """Release the GPUs of a job."""
        for node in nodes:
            self.free[node] += min(gpus, GPUS_PER_NODE)


NODES = 48
JOBS_A_DAY = 170.0
WEEKEND = 0.45  # share of a weekday's jobs
NIGHT = 0.5
TEAMS = {
    "vision": ("ana", "bo", "chen"),
    "speech": ("dana", "eli", "farid"),
    "language": ("gita", "hugo", "ines", "jun"),
    "robotics": ("kofi", "lena"),
}
OPTED_IN = frozenset({"vision", "language"})
NAMES = {
    "vision": ("vit-g", "detr", "diffuser"),
    "speech": ("whisper-ft", "asr-ctc"),
    "language": ("llm-7b-sft", "moe-small", "retriever"),
    "robotics": ("rl-arm", "policy-eval"),
}
SIZES = {1: 34, 2: 10, 4: 15, 8: 20, 16: 11, 32: 7, 64: 3}  # GPUs and their share in per cent
MEDIAN_S, SPREAD, LONGEST_S, SHORTEST_S = 5_200.0, 1.0, 100_000.0, 240.0
BUGGY, FLAKY, CANCELLED = 0.085, 0.02, 0.02  # shares of jobs with a bug, with a platform failure, cancelled
NODE_FAILURES_A_DAY = 0.006  # of a node in use
HANG_SHARE = 0.03  # of jobs on several nodes
PREEMPTED_A_DAY = 0.4  # of a job in the queue for preemptible jobs
_DAY_S = 86_400.0
_SEED = 7


class Simulation:
    """Jobs and their ends in time order. Equal starts give equal jobs until a person resubmits one.

    Args:
        story: what happens besides chance.
        start: when the cluster starts, empty.
    """

    def __init__(self, story: Story, start: datetime) -> None:
        self.now = start
        self._story = story
        self._rng = random.Random(_SEED)  # noqa: S311 -- demo data, not a secret
        self._fleet = Fleet.of(NODES)
        self._numbers = count(884_001)
        self._order = count()
        self._due: list[tuple[datetime, int, str, Any]] = []
        self._waiting: list[Job] = []
        self._failed: dict[str, tuple[Job, Scenario]] = {}
        self._put(start, "arrival", None)
        for at, job in story.jobs(start):
            self._put(at, "submit", job)

    def ends(self, until: datetime) -> Iterator[dict[str, Any]]:
        """The job completions until a time. The caller may resubmit jobs between two of them."""
        while self._due and self._due[0][0] <= until:
            self.now, _, kind, what = heapq.heappop(self._due)
            if kind == "arrival":
                self._arrive()
            elif kind == "submit":
                self._submit(what)
            elif kind == "owner":
                self._owner_returns(what)
            else:
                yield self._end(*what)
        self.now = until

    def next_at(self) -> datetime:
        """When something happens next."""
        return self._due[0][0]

    def resubmit(self, job_id: str, exclude: tuple[str, ...], at: datetime) -> bool:
        """Requeue a failed job, as a hook does; False if it is not known or was started again already."""
        if job_id not in self._failed:
            return False
        job, scenario = self._failed.pop(job_id)
        self._again(job, scenario, at, exclude=frozenset(exclude))
        return True

    def _put(self, at: datetime, kind: str, what: Any) -> None:
        heapq.heappush(self._due, (at, next(self._order), kind, what))

    def _arrive(self) -> None:
        local = self.now
        rate = JOBS_A_DAY * (WEEKEND if local.weekday() > 4 else 1.0)  # noqa: PLR2004 - Saturday and Sunday
        rate *= NIGHT if local.hour < 7 or local.hour > 20 else 1.3  # noqa: PLR2004 - working hours
        self._put(self.now + timedelta(seconds=self._rng.expovariate(rate / _DAY_S)), "arrival", None)
        team = self._rng.choice(sorted(TEAMS))
        gpus = self._rng.choices(list(SIZES), weights=list(SIZES.values()))[0]
        needed = self._rng.lognormvariate(math.log(MEDIAN_S), SPREAD)
        self._submit(
            Job(
                number=0,
                name=self._rng.choice(NAMES[team]),
                user=self._rng.choice(TEAMS[team]),
                team=team,
                queue=self._rng.choices(("train", "preemptible", "debug"), weights=(6, 2, 2))[0],
                gpus=gpus,
                needed_s=min(max(needed, SHORTEST_S), LONGEST_S),
                submitted_at=self.now,
                opted_in=team in OPTED_IN,
                bug=self._choose("owner") if self._rng.random() < BUGGY else None,
            )
        )

    def _submit(self, job: Job) -> None:
        if job.number == 0:
            job.number = next(self._numbers)
        job.submitted_at = self.now
        self._waiting.append(job)
        self._start_waiting()

    def _start_waiting(self) -> None:
        left = []
        for job in self._waiting:
            nodes = self._fleet.take(job.gpus, exclude=job.exclude, prefer=self._story.preferred_node(job))
            if not nodes:
                left.append(job)
                continue
            job.nodes, job.started_at = nodes, self.now + timedelta(seconds=self._rng.uniform(2, 20))
            end = self._outcome(job)
            self._put(end.at, "end", (job, end))
        self._waiting = left

    def _outcome(self, job: Job) -> End:
        """The first of everything that can end the attempt."""
        assert job.started_at is not None
        start, rng = job.started_at, self._rng
        done = start + timedelta(seconds=job.needed_s - job.saved_s)
        ends = [End(done)]

        def within(scenario: Scenario, seconds: float, node: str | None = None) -> None:
            ends.append(End(start + timedelta(seconds=seconds + scenario.hang_s), scenario, node))

        left = job.needed_s - job.saved_s
        if job.bug is not None:
            within(job.bug, rng.uniform(20, 150) if job.bug.startup else left * rng.uniform(0.1, 0.95))
        elif job.failures == 0 and rng.random() < FLAKY:
            chosen = self._choose("platform")
            within(chosen, rng.uniform(30, 200) if chosen.startup else left * rng.uniform(0.1, 0.9))
        if len(job.nodes) > 1 and rng.random() < HANG_SHARE:
            within(self._choose("hang"), left * rng.uniform(0.1, 0.9))
        if rng.random() < CANCELLED:
            within(scenarios.load()["cancelled"], left * rng.uniform(0.05, 0.9))
        if job.queue == "preemptible":
            within(scenarios.load()["preempted"], rng.expovariate(PREEMPTED_A_DAY / _DAY_S))
        for node in job.nodes:
            rate = self._story.node_failures_a_day(node, start) or NODE_FAILURES_A_DAY
            within(self._story.failure_of(node) or self._choose("node"), rng.expovariate(rate / _DAY_S), node)
        outage = self._story.outage_of(job, start, done, rng)
        if outage is not None:
            ends.append(outage)
        return min(ends, key=lambda end: end.at)

    def _end(self, job: Job, end: End) -> dict[str, Any]:
        self._fleet.give_back(job.nodes, job.gpus)
        made = event(job, end)
        if end.scenario is not None:
            assert job.started_at is not None
            ran = (end.at - job.started_at).total_seconds() - end.scenario.hang_s
            after = replace(job, saved_s=saved_after(job, max(ran, 0.0)), failures=job.failures + 1)
            self._react(after, end.scenario)
        self._start_waiting()
        return made

    def _react(self, job: Job, scenario: Scenario) -> None:
        """What scheduler and owner do after a failure; the hook of the service may be faster."""
        rng = self._rng
        if scenario.origin == "person":
            return
        if scenario.origin == "scheduler":
            self._again(job, scenario, self.now + timedelta(seconds=rng.uniform(120, 2_400)))
            return
        if scenario is job.bug and scenario.origin == "owner":
            if rng.random() < 0.2 and job.failures < 3:  # noqa: PLR2004 - some owners try again without a change
                self._by_owner(job, timedelta(minutes=rng.uniform(3, 30)), is_fixed=False)
            elif rng.random() < 0.75:  # noqa: PLR2004 - most owners mend it
                self._by_owner(job, timedelta(minutes=rng.uniform(20, 300)), is_fixed=True)
            return
        self._failed[job.job_id] = (job, scenario)
        hours = rng.uniform(6, 20) if job.opted_in else rng.uniform(0.5, 9)
        self._put(self.now + timedelta(hours=hours), "owner", job.job_id)

    def _owner_returns(self, job_id: str) -> None:
        """The owner submits the job again, unless it was started again meanwhile."""
        found = self._failed.pop(job_id, None)
        if found is not None:
            job, scenario = found
            # Hours later the platform works again; a bug of the owner's that has not shown itself is still there.
            self._submit(replace(self._copy(job, is_fixed=False), bug=None if job.bug is scenario else job.bug))

    def _by_owner(self, job: Job, pause: timedelta, *, is_fixed: bool) -> None:
        self._put(self.now + pause, "submit", self._copy(job, is_fixed=is_fixed))

    def _copy(self, job: Job, *, is_fixed: bool) -> Job:
        """The job as its owner submits it again, under a new number."""
        return replace(
            job,
            number=0,
            attempt=0,
            bug=None if is_fixed else job.bug,
            saved_s=0.0 if is_fixed else job.saved_s,
            resubmit_of=None if is_fixed else job.job_id,
        )

    def _again(self, job: Job, scenario: Scenario, at: datetime, exclude: frozenset[str] = frozenset()) -> None:
        """The same job starts again; whether it fails the same way depends on the scenario."""
        same = self._rng.random() >= scenario.rerun and scenario.origin != "node"
        made = replace(job, attempt=job.attempt + 1, exclude=exclude, bug=scenario if same else None)
        self._put(max(at, self.now), "submit", made)

    def _choose(self, origin: str) -> Scenario:
        found = scenarios.of_origin(origin)
        return self._rng.choices(found, weights=[one.weight for one in found])[0]
