"""Labels of a job and its `resubmit_of` are chosen by whoever submits it: they reach no job of another owner."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.resubmissions.repository.lineages import key_of
from tests.service.automation.world import World, job, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"
TARGET = key_of("orion", "1")
CLAIMS: list[dict[str, Any]] = [
    {"resubmit_of": "1"},
    {"labels": {"faultline/lineage": TARGET}},
    {"labels": {"faultline/lineage": TARGET}, "resubmit_of": "1"},
    {"labels": {"faultline/lineage": TARGET}, "cluster": "vega"},
]


@pytest.fixture
def here(new_database: Callable[[], str]) -> Iterator[World]:
    clock = FrozenClock(NOW)
    store = Store(new_database(), clock=clock)
    yield world(store, clock)
    store.close()


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("first", ["the job", "the claim"])
def test_who_claims_the_job_of_another_can_not_stop_its_resubmission(
    here: World, claim: dict[str, Any], first: str
) -> None:
    claiming = job("2", "unknown trouble", user="eve", team="speech", **claim)
    events = [job("1", XID), claiming]
    outcome: dict[str, int | None] = {}
    for one in events if first == "the job" else reversed(events):
        [done] = here.tell(one).events
        outcome[one["job_id"]] = done.failure_id
    failure = outcome["2"]
    assert failure is not None
    here.automation.never(failure, "eve", None)
    assert [(one.job_id, one.state) for one in here.requests()] == [("1", "waiting")]
    with here.store.reading() as reading:
        assert reading.lineages.mark_on("orion", "1") is None
        assert reading.lineages.mark_on(str(claiming["cluster"]), "2") == ("never", "eve")
    assert [one.job_id for one in here.lease()] == ["1"]


@pytest.mark.parametrize("claim", CLAIMS[:3])
def test_the_end_of_another_persons_job_is_no_result_of_a_request(here: World, claim: dict[str, Any]) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    here.wait(hours=3)
    began = (NOW + timedelta(hours=1)).isoformat()
    claim = {**claim, "labels": {**claim.get("labels", {}), "faultline/request": lease.request_id}}
    here.tell(job("2", XID, at=here.clock.at, started_at=began, user="eve", **claim))
    [request] = [one for one in here.requests() if one.job_id == "1"]
    assert (request.outcome, request.state) == (None, "leased")


def test_the_owner_s_own_resubmission_belongs_to_the_lineage(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    here.wait(hours=3)
    began = (NOW + timedelta(hours=1)).isoformat()
    here.tell(job("2", at=here.clock.at, started_at=began, labels=lease.labels, resubmit_of="1"))
    assert here.requests()[0].outcome == "succeeded"
    with here.store.reading() as reading:
        assert reading.lineages.find([("orion", "2")])["orion", "2"].lineage == TARGET


def test_on_kubernetes_a_label_with_the_user_is_not_enough(here: World) -> None:
    here.tell(job("vision/Job/a", XID))
    [done] = here.tell(job("other/Job/b", "unknown trouble", resubmit_of="vision/Job/a")).events
    assert done.failure_id is not None
    here.automation.never(done.failure_id, "eve", None)
    assert [one.state for one in here.requests()] == ["waiting"]
