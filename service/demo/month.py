"""Passes the demo's job completions to the service, and does what hooks and people would do meanwhile."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from service import compose
from service.contracts.event import JobCompletion, from_object
from service.demo.jobs import CLUSTER
from service.demo.simulation import Simulation
from service.demo.story import DEGRADED, Story, StoryClock
from service.errors import FaultlineError
from service.feedback.records import FeedbackInput
from service.groups.records import GroupFilter
from service.groups.service import GroupService
from service.resubmissions.records import HookAnswer

ARRIVAL = timedelta(seconds=4)  # from the end of a job to its event
BATCH = 50  # successful jobs stored at once
WAKES = tuple(timedelta(minutes=minutes) for minutes in (2, 14, 40))
HOOK, LEASE_S, LEASES = "slurm-orion", 60.0, 50


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that a person does in the month."""

    at: datetime
    act: Callable[[], None]


class Month:
    """Plays the month of a story into the services.

    Args:
        services: the services, built with `clock`.
        clock: set to the time of each event.
        story: the story of the month.
        simulation: the cluster.
    """

    def __init__(
        self, services: compose.ProcessServices, clock: StoryClock, story: Story, simulation: Simulation
    ) -> None:
        self.stored = 0
        self._services = services
        self._clock = clock
        self._simulation = simulation
        self._succeeded: list[JobCompletion] = []
        self._failures: defaultdict[str, list[int]] = defaultdict(list)  # by a text of their logs
        self._wakes: set[datetime] = set()
        self._moments = sorted(self._of_people(story), key=lambda moment: moment.at)

    def play(self, since: datetime, until: datetime, progress: Callable[[int, datetime], None]) -> None:
        """Store all that ends in a period, in the order of the ends; `progress` is called once for each day."""
        day = since
        while day < until:
            end = min(day + timedelta(days=1), until)
            self._play_day(end)
            self._clock.at = end
            self._services.node_statistics_updater()
            self._services.group_count_updater()
            progress(self.stored, end)
            day = end

    def live(self, now: datetime) -> None:
        """Store what has ended by now, and let the hook act."""
        for made in self._simulation.ends(now):
            self._store(made)
        self._flush()
        self._act()

    def _play_day(self, end: datetime) -> None:
        while True:
            moment = self._moments[0] if self._moments else None
            stop = min(*self._wakes, end if moment is None else moment.at, end)
            for made in self._simulation.ends(stop):
                at = self._simulation.now + ARRIVAL
                self._clock.at = at
                self._store(made)
                if made["status"] != "succeeded":
                    self._wakes.update(at + pause for pause in WAKES)
                    break  # the first wake may be before the next end
            else:
                self._clock.at = stop
                if moment is not None and moment.at == stop:
                    self._services.group_count_updater()
                    self._moments.pop(0).act()
                elif stop in self._wakes:
                    self._wakes.remove(stop)
                    self._act()
                else:
                    self._flush()
                    return

    def _store(self, made: dict[str, Any]) -> None:
        event = from_object(made)
        self.stored += 1
        if made["status"] == "succeeded":
            self._succeeded.append(event)
            # The result of a resubmit counts for the next decisions.
            if len(self._succeeded) >= BATCH or event.attempt or event.resubmit_of:
                self._flush()
            return
        outcome = self._services.diagnose([event])
        failure_id = outcome.events[0].failure_id
        if failure_id is not None:
            logs = " ".join(log["tail"] for log in made.get("logs", ()))
            for text in ("hub.internal", "shared memory", "oom_kill"):
                if text in logs:
                    self._failures[text].append(failure_id)

    def _flush(self) -> None:
        """Store the successful jobs; the clock is at or after the last end."""
        if self._succeeded:
            self._services.diagnose(self._succeeded)
            self._succeeded = []

    def _act(self) -> None:
        """Do the periodic work of automation, and carry out the requests that may start now."""
        automation = self._services.automation
        with self._services.store.reading() as reading:
            if not reading.requests.any_open():
                return
        automation.tick()
        for lease in automation.lease(HOOK, CLUSTER, limit=LEASES, seconds=LEASE_S):
            started = self._simulation.resubmit(lease.job_id, lease.exclude_nodes, self._clock.now())
            automation.ack(lease.request_id, lease.lease_token, HookAnswer("done" if started else "already_done"))

    def _of_people(self, story: Story) -> list[Moment]:
        return [
            Moment(story.now - timedelta(days=25), lambda: self._resolve("shared memory", "kofi")),
            Moment(story.now - timedelta(days=12), lambda: self._confirm("hub.internal", "ana")),
            Moment(story.repaired_at, lambda: self._repair("chen")),
            Moment(story.now - timedelta(days=1, hours=3), lambda: self._contest("oom_kill")),
        ]

    def _group_of(self, text: str) -> int | None:
        with self._services.store.reading() as reading:
            page = reading.groups.page(GroupFilter(), limit=500)
        ids = set(self._failures[text])
        return next((row.id for row in page.items if row.last_id in ids), None)

    def _resolve(self, text: str, actor: str) -> None:
        group = self._group_of(text)
        if group is not None:
            GroupService(self._services.store, self._clock).resolve([group], actor, "M4")

    def _confirm(self, text: str, actor: str) -> None:
        group = self._group_of(text)
        if group is not None:
            self._services.feedback.add_to_group(group, actor, FeedbackInput("confirm", note="The hub was overloaded."))

    def _repair(self, actor: str) -> None:
        self._services.node_event_intake.repaired(CLUSTER, DEGRADED, actor=actor, note="GPU 3 and its riser replaced")

    def _contest(self, text: str) -> None:
        """The owner of the newest such failure contests its verdict."""
        note = "The same job ran with this memory limit last week."
        for failure_id in reversed(self._failures[text]):
            try:
                with self._services.store.reading() as reading:
                    owner = reading.failures.get(failure_id).row.user
                self._services.feedback.add(failure_id, owner or "", FeedbackInput("contest", note=note))
            except FaultlineError:  # an older failure may be contested instead
                continue
            return
