"""Concurrent hooks that may be killed: no request is carried out twice or lost, and switch and limits hold."""

import random
import shutil
from collections import Counter
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from service.db.session import Store
from service.errors import Conflict
from service.resubmissions.records import HookAnswer, Lease
from tests.service.automation.world import AUTO, World, job, world
from tests.service.databases import migrated_file
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"
RESET = "connection reset by peer"
LOOSE = (
    AUTO + "[incident]\njobs = 1000\n[storm]\nmost = 10000\n[limits]\nrate_per_cluster = 10000\nrate_per_user = 10000\n"
)


_BY_PEOPLE = frozenset({"person", "repair"})  # held until a person releases it
_OPEN = frozenset({"held", "waiting", "leased"})


class Scheduler:
    """Counts the jobs that hooks start, and knows each request's id, which a later holder checks."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self._lock = Lock()

    def start(self, lease: Lease) -> None:
        """Start the job; a later holder checks first."""
        with self._lock:
            if lease.lease_count == 1 or not self.started[lease.request_id]:
                self.started[lease.request_id] += 1


@pytest.mark.parametrize("seed", range(3))
def test_hooks_killed_at_random_lose_and_repeat_nothing(store: Store, url: str, clock: FrozenClock, seed: int) -> None:
    jobs, hooks = 30, 4
    here = world(store, clock, LOOSE)
    here.tell(*(job(str(n), XID, user=f"u{n}") for n in range(jobs)))
    scheduler = Scheduler()
    held: dict[str, str] = {}
    twice: list[str] = []
    guard = Lock()

    def hook(number: int, turn: int) -> None:
        chance = random.Random(f"{seed} {turn} {number}")
        mine = world(Store(url, clock=clock, pool_size=1), clock, LOOSE)
        while given := mine.lease(chance.randint(1, 5), seconds=60, hook=f"hook{number}"):
            for lease in given:
                with guard:
                    if lease.request_id in held:
                        twice.append(lease.request_id)
                    held[lease.request_id] = lease.lease_token
                if chance.random() < 0.2:
                    continue  # it died before acting
                scheduler.start(lease)
                if chance.random() < 0.2:
                    continue  # it died before answering
                with guard:
                    held.pop(lease.request_id)
                mine.done(lease)
        mine.store.close()

    for turn in range(20):
        threads = [Thread(target=hook, args=(number, turn)) for number in range(hooks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held.clear()
        clock.at += timedelta(seconds=61)  # whoever died has lost its leases
        if all(request.state == "done" for request in here.requests()):
            break
    assert twice == []
    assert Counter(request.state for request in here.requests()) == {"done": jobs}
    assert scheduler.started == dict.fromkeys((request.request_id for request in here.requests()), 1)


class Automated(RuleBasedStateMachine):
    """Any sequence of ends, hooks, people and time."""

    made: World
    text = AUTO
    examples = 20

    def __init__(self) -> None:
        super().__init__()
        self.here = self.made
        self.leases: list[Lease] = []
        self.stopped = False
        self.number = 0
        self.acted: Counter[str] = Counter()
        self.held: set[str] = set()

    @rule(
        name=st.sampled_from("abcdefgh"),
        line=st.sampled_from([XID, RESET, "ModuleNotFoundError: x", "who knows", None]),
        user=st.sampled_from(["ana", "bea", "cyd"]),
        status=st.sampled_from(["failed", "failed", "failed", "cancelled"]),
        step=st.none() | st.integers(0, 5),
    )
    def ends(self, name: str, line: str | None, user: str, status: str, step: int | None) -> None:
        self.number += 1
        changes: dict[str, Any] = {} if line is None else {"status": status}
        if step is not None:
            changes["checkpoint"] = {"uri": "s3://ckpt", "step": step}
        self.here.wait(seconds=5)
        ended = self.here.clock.at
        changes["started_at"] = (ended - timedelta(seconds=2)).isoformat()
        self.here.tell(job(name, line, at=ended, user=user, attempt=self.number, **changes))

    @rule(limit=st.integers(1, 5), seconds=st.sampled_from([1, 30, 600]))
    def hook_leases(self, limit: int, seconds: int) -> None:
        given = self.here.lease(limit, seconds=seconds)
        assert not (self.stopped and given)
        for lease in given:
            assert lease.valid_until > self.here.clock.at
        self.leases += given

    @rule(which=st.integers(0, 100), result=st.sampled_from(["done", "refused", "unknown", "already_done"]))
    def hook_answers(self, which: int, result: Any) -> None:
        if not self.leases:
            return
        lease = self.leases[which % len(self.leases)]
        try:
            request = self.here.automation.ack(lease.request_id, lease.lease_token, HookAnswer(result))
        except Conflict:
            return
        assert request.result == result

    @rule(which=st.integers(0, 100), after=st.none() | st.integers(0, 100))
    def hook_fails(self, which: int, after: int | None) -> None:
        if not self.leases:
            return
        lease = self.leases[which % len(self.leases)]
        try:
            self.here.automation.fail(lease.request_id, lease.lease_token, "no", after)
        except Conflict:
            return

    @rule(stopped=st.booleans())
    def switch(self, stopped: bool) -> None:
        self.here.automation.set_stopped(stopped=stopped, actor="ana")
        self.stopped = stopped

    @rule(minutes=st.sampled_from([1, 11, 70, 60 * 25]))
    def time_goes_by(self, minutes: int) -> None:
        self.here.wait(minutes=minutes)
        self.here.automation.tick()

    @rule(which=st.integers(0, 100))
    def person_says_never(self, which: int) -> None:
        requests = self.here.requests()
        if requests:
            self.here.automation.never(requests[which % len(requests)].failure_id, "bea")

    @rule(which=st.integers(0, 100))
    def person_holds(self, which: int) -> None:
        requests = self.here.requests()
        if requests:
            one = requests[which % len(requests)]
            try:
                self.here.automation.hold(one.failure_id, "bea")
            except Conflict:
                assert any(
                    other.state == "leased" and other.leased_until and other.leased_until > self.here.clock.at
                    for other in self.here.requests()
                    if other.lineage == one.lineage
                )
            else:
                self.held.add(one.lineage)

    @rule(which=st.integers(0, 100))
    def person_resubmits(self, which: int) -> None:
        requests = self.here.requests()
        if requests:
            one = requests[which % len(requests)]
            try:
                self.here.automation.resubmit(one.failure_id, "bea")
            except Conflict:
                return
            self.held.discard(one.lineage)

    def teardown(self) -> None:
        self.here.store.close()

    @invariant()
    def what_a_person_holds_is_in_no_hook_s_hands(self) -> None:
        assert not [one for one in self.here.requests("leased") if one.lineage in self.held]

    @invariant()
    def one_open_request_a_piece_of_work(self) -> None:
        opened = Counter(one.lineage for one in self.here.requests() if one.state in _OPEN)
        assert not opened or max(opened.values()) == 1

    @invariant()
    def nothing_futile_cancelled_or_open_is_asked_for(self) -> None:
        asked = {one.failure_id for one in self.here.requests()}
        with self.here.store.reading() as reading:
            for number in asked:
                detail = reading.failures.get(number)
                assert not detail.row.abstained
                assert detail.row.retry_outlook != "futile"
                assert detail.row.status != "cancelled"

    @invariant()
    def no_ceiling_is_passed(self) -> None:
        resubmitted = Counter(
            one.lineage
            for one in self.here.requests()
            if one.origin == "policy" and one.state in {"leased", "done", "unknown"} and one.result != "already_done"
        )
        most = self.here.automation.policy.limits.infra_per_lineage
        assert not resubmitted or max(resubmitted.values()) <= most


class Limited(Automated):
    """With low limits, so that few failures make an incident or a storm; in the end every job succeeds."""

    examples = 8

    text = AUTO + (
        "[incident]\njobs = 3\n[storm]\nmost = 2\n[limits]\nrate_per_cluster = 4\nrate_per_user = 2\n"
        "infra_per_lineage = 50\ninfra_per_window = 50\n"
    )

    @rule(first=st.integers(0, 9), many=st.integers(1, 4))
    def jobs_fail_together(self, first: int, many: int) -> None:
        self.here.wait(seconds=5)
        ended = self.here.clock.at
        started = (ended - timedelta(seconds=2)).isoformat()
        line = "OSError: [Errno 116] Stale file handle: '/scratch/run{}/ckpt.pt'"
        self.here.tell(
            *(
                job(f"j{n}", line.format(n), at=ended, user=f"u{n}", started_at=started, gpus=1 + n)
                for n in range(first, first + many)
            )
        )

    @rule(minutes=st.sampled_from([6, 31]))
    def hook_works(self, minutes: int) -> None:
        self.here.wait(minutes=minutes)
        self.here.automation.tick()
        for lease in self.here.lease(5):
            self.leases.append(lease)
            self.here.done(lease)

    @rule(which=st.integers(0, 100))
    def leased_request_loses_its_support(self, which: int) -> None:
        leased = self.here.requests("leased")
        if leased:
            self.here.automation.never(leased[which % len(leased)].failure_id, "bea")

    @rule(which=st.integers(0, 100))
    def verdict_is_corrected(self, which: int) -> None:
        requests = self.here.requests()
        if requests:
            number = requests[which % len(requests)].failure_id
            with self.here.store.unit_of_work() as work:
                wire = dict(work.failures.get(number).verdict or {})
                self.here.automation.withdraw_unsupported(work, {number: wire | {"side": "user", "cause": "USER.1"}})

    def teardown(self) -> None:
        self.here.automation.set_stopped(stopped=False, actor="ana")
        for _ in range(80):  # 41 hours: less than what is held may wait
            self.here.wait(minutes=31)
            self.here.automation.tick()
            for lease in self.here.lease(50):
                self.here.done(lease)
                ended = self.here.clock.at
                began = (ended - timedelta(seconds=2)).isoformat()
                self.number += 1
                self.here.tell(job(lease.job_id, at=ended, started_at=began, attempt=self.number + 1_000))
            open_ones = [one for one in self.here.requests() if one.state in _OPEN]
            if all(one.state == "held" and one.held_by in _BY_PEOPLE for one in open_ones):
                break  # no request is left that time could change
        left = [(one.job_id, one.held_by) for one in self.here.requests("held") if one.held_by not in _BY_PEOPLE]
        super().teardown()
        assert left == []


class Stormy(Limited):
    """The same without incidents, which would hold the jobs before a storm does."""

    text = Limited.text.replace("jobs = 3", "jobs = 1000")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Automated, Limited, Stormy])
def test_invariants_hold_for_random_sequences_of_actions(
    tmp_path: Path, clock: FrozenClock, kind: type[Automated]
) -> None:
    numbers = count()

    def machine() -> Automated:
        clock.at = NOW
        path = tmp_path / f"{next(numbers)}.sqlite3"
        shutil.copy(migrated_file(), path)
        kind.made = world(Store(f"sqlite:///{path}", clock=clock), clock, kind.text)
        return kind()

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # any callable that makes one, as its own documentation says
        settings=settings(
            max_examples=kind.examples,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
