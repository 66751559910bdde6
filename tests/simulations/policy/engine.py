"""Runs a policy in a world, event by event, and counts the results."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tests.simulations.policy.world import End, Job, World

MOST_RUNS = 60


@dataclass(slots=True)
class Work:
    """One job with all its runs.

    `best` is the furthest progress of any run, `saved` that of the checkpoint, in hours.
    """

    job: Job
    runs: int = 0
    saved: float = 0.0
    best: float = 0.0
    first_failed_at: float | None = None
    began_at: float = 0.0
    nodes: tuple[int, ...] = ()
    roots: dict[str, float] = field(default_factory=dict)
    generation: int = 0


@dataclass(slots=True)
class Counted:
    """The results of a policy. GPU-hours of runs that failed again for the same root without progress are wasted."""

    failed_jobs: int = 0
    retries: int = 0
    wasted: float = 0.0
    rescued: int = 0
    to_rescue: list[float] = field(default_factory=list)


class Strategy(Protocol):
    """A policy under comparison."""

    def failed(self, engine: "Engine", work: Work, end: End) -> None:
        """A run failed; `engine.again` starts the next run, `engine.later` schedules a call."""
        ...

    def ended(self, engine: "Engine", work: Work, end: End) -> None:
        """A run ended, successfully or not; called before `failed`."""
        ...


class Engine:
    """The event queue of one world under one policy."""

    def __init__(self, world: World, strategy: Strategy) -> None:
        self.world = world.fork()
        self.now = 0.0
        self.counted = Counted()
        self._strategy = strategy
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0

    def run(self) -> Counted:
        """Run all jobs to their end and count the results."""
        for job in self.world.jobs:
            work = Work(job)
            self.later(job.starts, lambda work=work: self._begin(work, frozenset()))  # type: ignore[misc]
        while self._heap:
            self.now, _, happens = heapq.heappop(self._heap)
            happens()
        return self.counted

    def later(self, at: float, happens: Callable[[], None]) -> None:
        """Schedule an event."""
        self._sequence += 1
        heapq.heappush(self._heap, (max(at, self.now), self._sequence, happens))

    def again(self, work: Work, at: float, avoid: frozenset[int] = frozenset()) -> None:
        """Start the job again at a time, after a queue wait, on nodes that are not excluded."""
        if work.runs >= MOST_RUNS:
            return
        work.generation += 1
        generation = work.generation
        waits = self.world.random(work.job, -work.runs).expovariate(1 / self.world.parameters["queue_hours"])

        def begin() -> None:
            if work.generation == generation:
                self.counted.retries += 1
                self._begin(work, avoid)

        self.later(at + waits, begin)

    def call_off(self, work: Work) -> None:
        """Cancel a scheduled restart."""
        work.generation += 1

    def _begin(self, work: Work, avoid: frozenset[int]) -> None:
        random = self.world.random(work.job, work.runs)
        same = random.random() < self.world.parameters["same_node"]
        free = self.world.nodes_for(random, work.job, avoid | frozenset(work.nodes))
        stay = tuple(node for node in work.nodes if node not in avoid) if same else ()
        work.nodes = (*stay, *free)[: work.job.nodes]
        work.runs += 1
        work.began_at = self.now
        end = self.world.run(random, work.job, self.now, work.saved, work.nodes)
        self.later(end.at, lambda: self._end(work, end))

    def _end(self, work: Work, end: End) -> None:
        self._strategy.ended(self, work, end)
        if end.truth is None:
            if work.first_failed_at is not None:
                self.counted.rescued += 1
                self.counted.to_rescue.append(work.began_at - work.first_failed_at)
            return
        before = work.roots.get(end.root)
        if before is not None and end.done <= before:
            self.counted.wasted += work.job.gpus * (end.at - work.began_at)
        if work.first_failed_at is None:
            work.first_failed_at = end.at
            self.counted.failed_jobs += 1
        work.roots[end.root] = max(end.done, before or 0.0)
        self._strategy.failed(self, work, end)
        work.best = max(work.best, end.done)
        work.saved = max(work.saved, work.job.saved(end.done))
