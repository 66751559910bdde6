"""Events that count by when and where they were and by what they name, whatever their words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import Case, JobFacts, LogStream, NodeEvent, RawCase
from classifiers.relevance.event_candidates import JobEvidence, MatchedEvent, Reason, Support
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.classifiers.relevance.test_node_events import END, event, job, judged

BEGAN = datetime(2026, 11, 20, 8, tzinfo=UTC)
ENDED = BEGAN + timedelta(hours=4)
HOT = "GPU 3: clock fell 1755 -> 270 MHz (HW thermal slowdown)"
STEPS = "step 100 time 0.92\nstep 200 time 0.95\nstep 300 time 4.10\nstep 310 time 4.40\n"
LIMIT = "slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT 2026-11-20T12:00:00 DUE TO TIME LIMIT ***\n"


def first_of(log: str, what: str, *, after_s: float, node: str = "n1", status: str = "timeout") -> str:
    facts = JobFacts(status, started_at=BEGAN, ended_at=ENDED, nodes=("n1", "n2"), gpus=16)
    happened = NodeEvent(what, BEGAN + timedelta(seconds=after_s), node, "dcgm")
    streams = (LogStream(log, rank=0, node="n1"),)
    case: Case = EXTRACTOR.extract(RawCase(facts, streams, (happened,))).case
    return case.evidence[0].text


@pytest.mark.parametrize(
    ("log", "status", "after_s", "node", "leads"),
    [
        (STEPS + LIMIT, "timeout", 3_600, "n1", True),
        (STEPS.replace("4.", "0.9") + LIMIT, "timeout", 3_600, "n1", False),  # it was as fast as before
        (STEPS + LIMIT, "timeout", -7_200, "n1", False),  # long before the job
        (STEPS + LIMIT, "timeout", 3_600, "n7", False),
        (STEPS + "KeyError: 'label'\n", "failed", 3_600, "n1", False),  # it met no limit
    ],
)
def test_a_few_slow_steps_before_the_limit_support_what_slows_a_node(
    log: str, status: str, after_s: float, node: str, *, leads: bool
) -> None:
    assert (first_of(log, HOT, after_s=after_s, node=node, status=status) == HOT) is leads


def slow(**changes: Any) -> JobEvidence:
    values: dict[str, Any] = {"slowed_between": lambda: (END - 4_000, END - 2_000)} | changes
    return job(own_entries=[], other_entries=frozenset(), failed=None, **({"status": "timeout"} | values))


@pytest.mark.parametrize(("before_s", "is_used"), [(3_000, True), (4_800, True), (6_000, False), (1_000, False)])
def test_an_event_slows_a_job_between_its_fast_and_its_slow_steps(before_s: float, *, is_used: bool) -> None:
    disk = event("ata3.00: failed command", at=END - before_s, entries=("storage.controller",))
    assert (judged(disk, slow()).support is Support.SLOWER) is is_used
    assert judged(disk, slow(slowed_between=lambda: None)).reason is not None
    assert judged(disk, slow(status="failed")).reason is not None
    assert judged(event("ata3.00: failed command", at=END - 3_000, node="gpu2", entries=disk.entries), slow()).reason


@pytest.mark.parametrize(
    ("node", "log", "is_used"),
    [
        ("gpu[1-4]", "", True),
        ("gpu[2-4]", "", False),
        ("ip-10-0-3-17", "lost 10.0.3.17:29500", True),
        ("ip-10-0-3-17", "lost 10.0.3.18:29500", False),
    ],
)
def test_a_list_of_nodes_and_an_address_in_a_name_tell_whose_an_event_is(node: str, log: str, *, is_used: bool) -> None:
    assert (judged(event(node=node), job(log)).reason is not Reason.OTHER_NODE) is is_used


def seen_with(text: str, entry: str, causes: set[str], **changes: Any) -> JobEvidence:
    shown = frozenset({entry})
    values: dict[str, Any] = {"failure_text": lambda: text, "own_causes": frozenset(causes)} | changes
    return job(own_entries=[shown], other_entries=shown, **values)


def of_causes(text: str, *, before_s: float, entries: tuple[str, ...], node: str = "gpu1") -> MatchedEvent:
    return MatchedEvent(0, text, node, "agent", END - 10 - before_s, entries, frozenset({"SYS.1"}))


@pytest.mark.parametrize(
    ("path", "before_s", "node", "is_used"),
    [
        ("/data/sets/a.tar", 20, "gpu1", True),
        ("/other/a.tar", 20, "gpu1", False),
        ("/data2/a.tar", 20, "gpu1", False),
        ("/data/sets/a.tar", 900, "gpu1", False),
        ("/data/sets/a.tar", 20, "gpu2", False),
    ],
)
def test_a_file_is_missed_at_once_after_an_event_names_its_directory(
    path: str, before_s: float, node: str, *, is_used: bool
) -> None:
    seen = seen_with(f"FileNotFoundError: '{path}'", "python.file-not-found", {"USER.1"})
    gone = of_causes("Mount[/data] changed to absent", before_s=before_s, entries=("x.y",), node=node)
    assert (judged(gone, seen).reason is None) is is_used


@pytest.mark.parametrize(
    ("entry", "before_s", "is_used"),
    [
        ("storage.disk-full-write", 20, True),
        ("storage.disk-full-write", 1_000, False),
        ("network.dns-failure", 20, False),
    ],
)
def test_an_error_of_the_same_kind_of_object_at_once_after_an_event(
    entry: str, before_s: float, *, is_used: bool
) -> None:
    worn = of_causes("md0: member failed", before_s=before_s, entries=("storage.disk-worn",))
    assert (judged(worn, seen_with("", entry, {"SYS.2", "USER.2"})).reason is None) is is_used


def test_a_failure_without_a_time_follows_at_once_where_no_progress_came_after_the_event() -> None:
    worn = of_causes("md0: member failed", before_s=500, entries=("storage.disk-worn",))
    without: dict[str, Any] = {"failed": None, "last_progress": END - 520}
    assert judged(worn, seen_with("", "storage.disk-full-write", {"SYS.2", "USER.2"}, **without)).reason is None
    went_on = without | {"last_progress": END - 100}
    assert judged(worn, seen_with("", "storage.disk-full-write", {"SYS.2", "USER.2"}, **went_on)).reason is not None


def test_a_test_before_the_job_speaks_for_wrong_numbers_that_the_job_met_later() -> None:
    shown: dict[str, Any] = {"text": "", "entry": "pytorch.nan-function", "causes": {"HW.GPU.1", "USER.1"}}
    entries = ("nvidia-health.wrong-results",)
    tested = MatchedEvent(
        0, "memory test of GPU 3: 2 faulty cells", "gpu1", "prolog", -5.0, entries, frozenset({"HW.GPU.1"})
    )
    assert judged(tested, seen_with(**shown)).reason is None
    assert judged(tested, seen_with(**(shown | {"causes": {"USER.1"}}))).reason is Reason.NOT_SHOWN
    days_ago = MatchedEvent(0, tested.text, "gpu1", "prolog", -90_000.0, entries, tested.causes)
    assert judged(days_ago, seen_with(**shown)).reason is Reason.NOT_SHOWN


def test_what_lasts_until_a_repair_is_shown_by_the_scheduler_too() -> None:
    refused = frozenset({"kubernetes.device-plugin"})
    seen = job(own_entries=[], other_entries=refused, started=END - 60, last_progress=None, failed=None)
    assert judged(event(at=END - 400), seen).support is Support.LOG
    assert judged(event(at=END - 400), job(own_entries=[], other_entries=frozenset(), started=END - 60)).reason


@pytest.mark.parametrize(
    ("entries", "before_s", "node", "is_used"),
    [
        (("changes.nodes",), 60, "gpu1", True),
        (("changes.nodes",), 900, "gpu1", False),
        (("changes.nodes",), 60, "gpu2", False),
        (("changes.purge",), 60, "gpu1", False),  # files, which end no job
    ],
)
def test_a_job_that_ends_at_once_after_a_change_of_its_node(
    entries: tuple[str, ...], before_s: float, node: str, *, is_used: bool
) -> None:
    change = event("pool upgrade of this node", at=END - before_s, node=node, source="cloud", entries=entries)
    ended = job(own_entries=[], other_entries=frozenset({"pytorch.elastic-signal"}), failed=None, last_progress=None)
    assert (judged(change, ended).reason is None) is is_used


def test_a_change_of_the_whole_platform_keeps_a_job_from_beginning() -> None:
    change = MatchedEvent(0, "policy applied to the cluster", None, "change", 500.0, ("changes.network",))
    waited = frozenset({"pytorch.rendezvous-timeout"})
    seen = job(own_entries=[waited], other_entries=waited, started=900.0, last_progress=None)
    assert judged(change, seen).reason is None
    assert judged(change, job(own_entries=[waited], other_entries=waited, started=900.0)).reason is not None


@pytest.mark.parametrize(
    ("log", "own", "is_used"),
    [
        ("denied on https://kms.corp:8200/v1/key", frozenset(), True),
        ("denied on https://other.corp:8200/v1/key", frozenset(), False),
        ("denied on https://kms.corp:8200/v1/key", frozenset({"python.key-error"}), False),
    ],
)
def test_a_change_of_a_service_whose_address_the_log_names(log: str, own: frozenset[str], *, is_used: bool) -> None:
    seen = job(log, own_entries=[own], other_entries=own)
    change = event("leases removed", at=END - 400, node="kms-0", source="audit", entries=("changes.control",))
    assert (judged(change, seen).reason is None) is is_used
