"""Changes before a failure are shown, and decide nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.relevance.fleet_evidence import update_verdict
from classifiers.relevance.recent_changes import NO_CAUSE, RecentChange, with_changes
from classifiers.relevance.records import FleetEvidence, NodeObservation
from tests.classifiers.relevance.test_fleet_evidence import USER

END = datetime(2026, 11, 20, 12, tzinfo=UTC)
SERIOUS = "driver update to 590.1, because GPU 3 fell off the bus: Xid 79"


def change(minutes: float, text: str = "driver 580 to 590", node: str = "n1") -> RecentChange:
    return RecentChange(node, END - timedelta(minutes=minutes), text)


def test_the_latest_changes_are_evidence_with_a_note() -> None:
    before = USER
    after = with_changes(before, [change(200, "quota"), change(12), change(12, node="n2"), change(-5, "later")], END)
    added = after.evidence[len(before.evidence) :]
    assert [(one.text, one.role, one.stream) for one in added] == [
        ("driver 580 to 590", "context", "change"),
        ("quota", "context", "change"),
    ]
    assert added[0].note == f"changed 12 min before the end; {NO_CAUSE}"
    assert replace(after, evidence=before.evidence) == before


def test_changes_of_an_earlier_reading_are_replaced() -> None:
    once = with_changes(USER, [change(12)], END)
    assert with_changes(once, [change(12)], END) == once
    assert with_changes(once, [], END) == USER


def test_a_change_among_node_observations_has_no_weight() -> None:
    observed = NodeObservation("n1", END - timedelta(minutes=1), "change", SERIOUS)
    known = USER
    assert update_verdict(known, FleetEvidence(END, ("n1",), observations=(observed,))) == known


def test_a_change_in_the_event_of_a_job_is_set_aside_whatever_it_says() -> None:
    event = NodeEvent(SERIOUS, END, "n1", "change")
    raw = RawCase(JobFacts("failed", nodes=("n1",)), (LogStream("step 1\nKeyError: 'y'\n"),), (event,))
    case = Extractor(Scanner(signatures.packaged())).extract(raw).case
    [noted] = [line for line in case.evidence if line.stream == "node"]
    assert (noted.role, noted.note) == ("context", NO_CAUSE)
    assert case.evidence[0].text == "KeyError: 'y'"
