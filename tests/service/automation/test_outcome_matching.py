"""The outcome of a request: the end of its job, compared with the failure."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from classifiers.contracts import Progress, Verdict
from service.automation.job_ends import EndedAttempt
from service.automation.lineage import LineageAssignment
from service.automation.outcome_matching import belongs_to, below_minimum, outcome_of_end
from service.db.session import Store
from service.resubmissions.records import AwaitedRequest, LineageMember, TallyRow
from service.resubmissions.repository.lineages import key_of
from tests.service.automation.world import AUTO, OUTAGE, World, event, job, rules, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

BEGAN = NOW - timedelta(hours=3)
REQUEST = AwaitedRequest(
    id=1,
    request_id="rabc",
    failure_id=1,
    cluster="orion",
    job_id="1",
    new_job_id=None,
    lineage=key_of("orion", "1"),
    kind="requeue",
    plan="again",
    cause="SYS.5",
    policy="p",
    fingerprint="1:stale",
    step=100,
    attempt_id=1,
    leased_at=NOW - timedelta(minutes=30),
    state="done",
    incident_id=None,
    began=BEGAN,
    resource="",
    origin="policy",
)


FLOOR = AUTO + "[demotion]\nfloor = 0.33\ncredible = 0.9\nat_least = 5\n"


def ended(job_id: str = "1", verdict: Verdict | None = OUTAGE, **changes: Any) -> EndedAttempt:
    line = None if verdict is None else "Stale file handle"
    return EndedAttempt(2, event(job_id, line, at=NOW, **changes), verdict, None if verdict is None else 2)


@pytest.mark.parametrize(
    ("end", "output"),
    [
        (ended(verdict=None), "succeeded"),
        (ended(), "failed_same"),
        (ended(verdict=replace(OUTAGE, fingerprint="1:other")), "failed_otherwise"),
        (ended(verdict=replace(OUTAGE, progress=Progress(step=101))), "got_past"),
        (ended(verdict=replace(OUTAGE, progress=Progress(step=100))), "failed_same"),
        (ended(checkpoint={"step": 500}), "got_past"),
        (ended(status="cancelled"), "unknown"),
        (ended(status="preempted"), "unknown"),
    ],
)
def test_the_outcome_compares_the_end_with_the_failure(end: EndedAttempt, output: str) -> None:
    assert outcome_of_end(REQUEST, end) == output


@pytest.mark.parametrize(
    ("request_changes", "end", "same"),
    [
        ({}, ended(), True),
        ({}, ended(started_at=(BEGAN - timedelta(hours=1)).isoformat()), False),  # an earlier run, told late
        ({}, ended(started_at=BEGAN.isoformat()), True),  # both runs started in one second of Slurm's clock
        ({"leased_at": NOW + timedelta(seconds=2)}, ended(started_at=BEGAN.isoformat()), False),
        ({"leased_at": NOW + timedelta(seconds=0.7)}, ended(started_at=BEGAN.isoformat()), True),
        ({}, ended(cluster="vega"), False),
        ({}, ended("2"), False),
        ({}, ended("2", resubmit_of="1"), True),
        ({"new_job_id": "3"}, ended("2", resubmit_of="1"), False),  # it is known as what it was started
        ({"new_job_id": "3"}, ended("3"), True),
        ({"kind": "submit"}, ended(), False),
        ({"kind": "submit", "new_job_id": "1"}, ended(), True),
        ({}, ended("9", labels={"faultline/request": "rabc"}), True),
        ({}, ended("1", labels={"faultline/request": "rxyz"}), False),
        ({}, ended("9", labels={"faultline/lineage": key_of("orion", "1")}), True),
        ({}, ended("9", labels={"faultline/lineage": "not a key"}), False),
    ],
)
def test_an_end_belongs_to_the_request_of_its_job(request_changes: Any, end: EndedAttempt, same: bool) -> None:
    lineages = LineageAssignment(by_attempt={2: LineageMember(end.event.labels.get("faultline/lineage", ""), "1")})
    assert belongs_to(replace(REQUEST, **request_changes), end, lineages) is same


def test_the_failed_attempt_is_never_the_outcome_of_its_own_request() -> None:
    own = LineageAssignment(by_attempt={1: LineageMember("", "1")})
    assert not belongs_to(REQUEST, replace(ended(), attempt_id=1), own)


@pytest.mark.parametrize(
    ("helped", "failed", "under"), [(0, 4, False), (0, 12, True), (10, 2, False), (1, 12, True), (4, 8, False)]
)
def test_an_action_is_demoted_only_below_a_credible_minimum(helped: int, failed: int, under: bool) -> None:
    assert below_minimum(TallyRow("orion", "SYS.5", "again", "p", helped, failed, 0, 0), rules(FLOOR)) is under


def test_a_demoted_action_becomes_advice_and_is_announced(store: Store, clock: FrozenClock) -> None:
    text = FLOOR + "[limits]\nsame_failure = 50\n[storm]\nmost = 500\nat_least = 500\n[incident]\njobs = 500\n"
    here: World = world(store, clock, text)
    for number in range(10):
        here.tell(job(str(number), "connection reset by peer", at=clock.at))
        here.wait(minutes=30)
        for lease in here.lease():
            here.done(lease)
        here.wait(hours=1)
        began = (clock.at - timedelta(minutes=20)).isoformat()
        here.tell(job(str(number), "connection reset by peer", at=clock.at, started_at=began))
        for request in here.requests("waiting"):
            here.automation.never(request.failure_id, "ana")
    with store.reading() as reading:
        [demotion] = reading.outcomes.demotions()
    assert (demotion.cause, demotion.plan, demotion.helped) == ("SYS.5", "again", 0)
    assert len(here.messages("resubmission.demoted")) == 1
    before = len(here.requests())
    here.tell(job("99", "connection reset by peer", at=clock.at))
    assert len(here.requests()) == before
    # Months later its failures count no more, and it may earn its trust again.
    here.wait(days=120)
    here.tell(job("100", "connection reset by peer", at=clock.at))
    assert len(here.requests()) == before + 1


def test_a_missing_end_becomes_unknown(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    here.wait(minutes=30)
    here.done(here.lease()[0])
    here.wait(days=15)
    here.automation.tick()
    [request] = here.requests()
    assert request.outcome == "unknown"


def test_the_end_of_a_controller_requests_a_resubmit(here: World) -> None:
    pod = job(
        "ml/Job/llm",
        "connection reset by peer",
        scheduler="kubernetes",
        pod="llm-0-x",
        started_at=(NOW - timedelta(hours=2)).isoformat(),
    )
    here.tell(pod | {"event_id": "pod"})
    assert here.requests() == []  # the Job starts its pod again by itself
    own = {name: value for name, value in pod.items() if name not in {"pod", "logs"}}
    here.tell(own | {"event_id": "job", "ended_at": NOW.isoformat()})
    [request] = here.requests()
    assert (request.state, request.action, request.job_id) == ("waiting", "submit", "ml/Job/llm")
    assert [kind for kind, _ in here.messages("failure.diagnosed", "failure.revised")] == [
        "failure.diagnosed",
        "failure.revised",
    ]
