"""The month of the demo besides chance: an outage, a node that degrades, a bug, a failure that returns; its clock."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from service.demo import scenarios
from service.demo.jobs import End, Job
from service.demo.scenarios import Scenario


class StoryClock:
    """A clock that is set from event to event. `at` None: the system's time."""

    def __init__(self, at: datetime | None) -> None:
        self.at = at

    def now(self) -> datetime:
        """Return the time of the story, or the system's time after the month."""
        return self.at or datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        time.sleep(seconds)


DAYS = 28
DEGRADED, SUSPECT = "gpu018", "gpu041"
_DEGRADED_A_DAY, _SUSPECT_A_DAY = 1.4, 2.5  # failures
_OUTAGE_MINUTES = 38
_STARTED_DURING_S = (20, 100)


@dataclass(frozen=True, slots=True)
class Story:
    """Times of the story, relative to `now`, the end of the month."""

    now: datetime

    @property
    def repaired_at(self) -> datetime:
        """When the degraded node is repaired."""
        return self.now - timedelta(days=9)

    @property
    def outage(self) -> tuple[datetime, datetime]:
        """The outage of the file system /scratch, on a working day."""
        begin = (self.now - timedelta(days=8)).replace(hour=10, minute=12, second=0, microsecond=0)
        while begin.weekday() > 4:  # noqa: PLR2004 - Saturday and Sunday
            begin -= timedelta(days=1)
        return begin, begin + timedelta(minutes=_OUTAGE_MINUTES)

    def node_failures_a_day(self, node: str, at: datetime) -> float | None:
        """The failure rate of a node of the story; None: as of any node."""
        if node == DEGRADED and self.now - timedelta(days=25) <= at < self.repaired_at:
            return _DEGRADED_A_DAY
        if node == SUSPECT and at >= self.now - timedelta(days=6):
            return _SUSPECT_A_DAY
        return None

    def failure_of(self, node: str) -> Scenario | None:
        """How a node of the story fails; None: by chance."""
        names = {DEGRADED: "gpu off the bus", SUSPECT: "infiniband port"}
        return scenarios.load()[names[node]] if node in names else None

    def preferred_node(self, job: Job) -> str | None:
        """The nodes of the story are used by long jobs, so that what they cost is seen."""
        if job.gpus < 8 or job.exclude:  # noqa: PLR2004 - a whole node
            return None
        return DEGRADED if job.number % 2 else SUSPECT

    def outage_of(self, job: Job, start: datetime, end: datetime, rng: random.Random) -> End | None:
        """The end of an attempt by the outage; None if it is not running then or does not use the file system."""
        begin, over = self.outage
        if start >= over or end <= begin or job.number % 10 < 2:  # noqa: PLR2004 - a fifth reads local disks only
            return None
        at = begin + timedelta(seconds=rng.uniform(10, 700))
        if start >= at:
            # Each attempt of a job fails at the same point: one that got past it would close the incident while the
            # outage lasts.
            first, last = _STARTED_DURING_S
            at = start + timedelta(seconds=first + job.number * 37 % (last - first))
        return End(at, scenarios.load()["file system"]) if start < at < min(over, end) else None

    def jobs(self, start: datetime) -> Iterator[tuple[datetime, Job]]:
        """Jobs of the story: one user's bug today, and a failure of the first days that returns on the last one."""
        bug, leak = scenarios.load()["label range"], scenarios.load()["shared memory"]
        for number in range(5):
            at = self.now - timedelta(hours=5) + timedelta(minutes=17 * number)
            yield at, self._job(at, "llm-7b-sft", "hugo", "language", 8, bug)
        for days in (26.7, 26.2, 25.9, 25.6, 1.1, 0.7, 0.3):
            at = max(self.now - timedelta(days=days), start)
            user = ("dana", "eli", "farid")[int(days * 10) % 3]
            yield at, self._job(at, "asr-ctc", user, "speech", 16, leak)

    @staticmethod
    def _job(at: datetime, name: str, user: str, team: str, gpus: int, bug: Scenario) -> Job:
        return Job(0, name, user, team, "train", gpus, 5_400.0, at, opted_in=team == "language", bug=bug)
