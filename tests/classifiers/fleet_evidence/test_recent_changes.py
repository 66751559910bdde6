"""Changes before a failure are shown; they are evidence only where the log shows what they cause."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import Case, JobFacts, LogStream, NodeEvent, RawCase
from classifiers.fleet_evidence.recent_changes import NO_CAUSE, RecentChange, with_changes
from classifiers.fleet_evidence.records import FleetEvidence, FleetNodeEvent
from classifiers.fleet_evidence.verdict_update import update_verdict
from classifiers.relevance.event_candidates import Reason
from tests.classifiers.fleet_evidence.test_verdict_update import USER
from tests.classifiers.packaged_catalogue import EXTRACTOR

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


def test_a_change_among_node_events_has_no_weight() -> None:
    observed = FleetNodeEvent("n1", END - timedelta(minutes=1), "change", SERIOUS)
    known = USER
    assert update_verdict(known, FleetEvidence(END, ("n1",), node_events=(observed,))) == known


def of_job(log: str, *events: tuple[str, float, str], nodes: tuple[str, ...] = ("n1",)) -> Case:
    """The evidence of a job with a log and changes: text, hours before the end, source."""
    changes = tuple(NodeEvent(text, END - timedelta(hours=hours), "n1", source) for text, hours, source in events)
    raw = RawCase(JobFacts("failed", nodes=nodes, ended_at=END), (LogStream(log),), changes)
    return EXTRACTOR.extract(raw).case


def test_a_change_that_the_log_does_not_fit_is_set_aside_whatever_it_says() -> None:
    case = of_job("step 1\nKeyError: 'y'\n", (SERIOUS, 0, "change"))
    [noted] = [line for line in case.evidence if line.stream == "node"]
    assert (noted.role, noted.note) == ("context", Reason.NOT_SHOWN.value)
    assert case.evidence[0].text == "KeyError: 'y'"


def test_a_change_that_no_entry_knows_is_no_cause() -> None:
    case = of_job("KeyError: 'y'\n", ("the logo of the portal is green", 1, "change"))
    [noted] = [line for line in case.evidence if line.stream == "node"]
    assert (noted.role, noted.note) == ("context", NO_CAUSE)


FULL = "OSError: [Errno 122] Disk quota exceeded: '/proj/a/step_3.pt'\n"
RUNTIME = "puppet: containerd 1.7.2 -> 1.7.9, drop-in with LimitMEMLOCK removed"
MEMLOCK = "node3:12:12 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
MODULE = "toolchain 2022b and module GCC/11.3.0 removed from all compute nodes"
NO_MODULE = 'Lmod has detected the following error: The following module(s) are unknown:\n   "{name}"\n'


@pytest.mark.parametrize(
    ("log", "change", "hours", "leads"),
    [
        (MEMLOCK, RUNTIME, 3, True),
        (MEMLOCK, RUNTIME, 100, False),  # more than three days ago
        (MEMLOCK, RUNTIME, -1, False),  # after the failure
        (MEMLOCK, MODULE, 3, False),  # of something else
        (NO_MODULE.format(name="GCC/11.3.0"), MODULE, 3, True),
        (NO_MODULE.format(name="Julia/1.9.2"), MODULE, 3, False),  # the log names another module
        (FULL, "filer: default quota lowered for 12 projects: hard limit 8 TiB -> 2 TiB", 3, True),
    ],
)
@pytest.mark.parametrize("source", ["change", "puppet"])
def test_a_change_leads_what_it_causes(log: str, change: str, hours: float, source: str, *, leads: bool) -> None:
    first = of_job(log, (change, hours, source)).evidence[0]
    assert (first.stream == "node" and first.signature is not None and first.signature.startswith("changes.")) == leads


def test_a_device_fault_that_a_change_does_not_explain_comes_before_it() -> None:
    log = "RuntimeError: CUDA error: unknown error\n"
    fault = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    case = of_job(log, ("unattended-upgrade: nvidia-driver-570 570.1 -> 570.2", 2, "apt"), (fault, 0, "kernel"))
    assert case.evidence[0].text == fault


def test_files_that_a_retention_policy_removed_are_not_the_platforms_fault() -> None:
    log = "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/p12/corpus/a.idx'\n"
    purge = "purge of scratch: 312 files removed under /scratch/p12/corpus, last access 31 days ago"
    assert of_job(log, (purge, 5, "robinhood")).evidence[0].signature == "changes.purge"
    assert of_job(log.replace("p12", "p77"), (purge, 5, "robinhood")).evidence[0].signature != "changes.purge"
