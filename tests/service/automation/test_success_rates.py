"""Reported fixes are counted besides the outcomes of resubmits, on both databases."""

from datetime import timedelta

from service.automation.success_rates import NO_HISTORY, success_rates
from service.db.session import Store
from service.fixes import service as fix_service
from service.fixes.repository import FixCount
from service.recommend.facts import Tally
from service.resubmissions.records import TallyRow
from tests.service.automation.world import World, job

XID = "NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus."


def test_resubmits_and_fixes_are_counted_by_cluster_and_cause() -> None:
    rows = [TallyRow("orion", "SYS.5", "again", "p1", 3, 1, 0, 0)]
    counts = [
        FixCount("orion", "SYS.5", "M7", 2),
        FixCount("orion", "SYS.5", "M1", 1),
        FixCount("vega", "HW.1", "M8", 4),
    ]
    found = success_rates(rows, counts)
    history = found.history("orion", "SYS.5", "p1")
    assert history.resolved_by == {"M1": 4, "M7": 2}
    assert history.resubmits == {"again": Tally(3, 1)}
    assert found.history("vega", "HW.1", "p1").resolved_by == {"M8": 4}
    assert found.history("vega", "HW.1", "p1").resubmits == {}
    assert found.history("vega", "SYS.5", "p1") is NO_HISTORY


def test_the_next_advice_uses_the_success_rates(here: World, store: Store) -> None:
    first = here.tell(job("1", XID)).events[0].failure_id
    assert first is not None
    fix_service.report(store, first, "ana", "M8")
    here.wait(minutes=1)  # the success rates are cached for some seconds
    second = here.tell(job("2", XID, user="bo", at=here.clock.at - timedelta(seconds=5))).events[0].failure_id
    with store.reading() as reading:
        verdict = reading.failures.get(second or 0).verdict or {}
    worked = [one["text"] for one in verdict["mitigations"] if "on this cluster." in one["text"]]
    assert [text.endswith("This resolved one such failure on this cluster.") for text in worked] == [True]
    assert verdict["reasons"][-1].endswith("were resolved by Node De-commission (1).")


def test_a_successful_resubmit_is_counted_once(here: World, store: Store) -> None:
    first = here.tell(job("1", XID)).events[0].failure_id
    [lease] = here.lease()
    here.done(lease, new_job_id="2")
    assert first is not None
    fix_service.report(store, first, "ana", "M1")  # reported before the outcome is known
    long_ago, later = here.clock.at - timedelta(days=1), here.clock.at + timedelta(days=1)
    with store.reading() as reading:
        assert [one.many for one in reading.applied_fixes.counts(long_ago)] == [1]
        assert reading.applied_fixes.between(long_ago, later) == {}  # the report counts it as automatic
    here.wait(hours=3)
    here.tell(job("2", at=here.clock.at - timedelta(minutes=1)))
    with store.reading() as reading:
        assert reading.applied_fixes.counts(long_ago) == []
        tallies = reading.outcomes.tallies(long_ago)
    assert success_rates(tallies).history("orion", "HW.GPU.1", tallies[0].policy).resolved_by == {"M1": 1}
