"""Events after which a run got slower or stopped, tests after a job, and changes that later events name."""

from typing import Any

import pytest

from classifiers.extraction.clocks import clock_ahead
from classifiers.relevance.event_candidates import JobEvidence, Judgement, Reason, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.node_events import judge
from tests.classifiers.relevance.test_node_events import END, event, job, judged

SLOWED_AT = END - 3_000
WATCHDOG = frozenset({"pytorch.nccl-watchdog-timeout"})
HOT = ("nvidia.gpu-thermal",)
NARROW = ("adapters.pcie-width",)
WRONG_RESULTS = ("nvidia-health.wrong-results",)
KILLED = ("nodes.processes-killed",)


def late(at: float | None = SLOWED_AT) -> JobEvidence:
    """A job that reached its time limit, with the time since when its steps were slower."""
    limit = frozenset({"slurm.time-limit"})
    return job(own_entries=[limit], other_entries=limit, failed=None, status="timeout", slowed=lambda: at)


def stopped(*others: str) -> JobEvidence:
    """A job whose processes waited for each other until a limit, with further entries of its log."""
    return job(own_entries=[], other_entries=WATCHDOG | set(others), last_progress=END - 700, stalled=END - 650)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        (HOT, "GPU 6: HW Thermal Slowdown: Active"),
        (("chassis.power-capped",), "BMC: power limit 2400 W enforced"),
        (("chassis.processor-throttled",), "CPU3: Package temperature above threshold, cpu clock throttled"),
        (("changes.agents",), "security agent 7.4 rolled out"),
    ],
)
def test_what_limits_a_node_is_supported_by_slower_steps_only_from_then_on(entries: tuple[str, ...], text: str) -> None:
    limited = event(text, at=SLOWED_AT - 60, entries=entries)
    assert judged(limited, late()).support is Support.SLOWER
    assert judged(limited, late(None)).reason is not None
    assert judged(limited, late(SLOWED_AT + 2_000)).reason is not None


def test_a_change_after_the_steps_got_slower_did_not_slow_them_down() -> None:
    change = event("security agent 7.4 rolled out", at=SLOWED_AT + 300, entries=("changes.agents",))
    hot = event("GPU 6: HW Thermal Slowdown: Active", at=SLOWED_AT + 300, entries=HOT)
    assert judged(change, late()).reason is Reason.NO_TRACE or judged(change, late()).reason is Reason.NOT_SHOWN
    assert judged(hot, late()).support is Support.SLOWER  # a monitor reports with delay


@pytest.mark.parametrize(
    ("entries", "at", "is_used"),
    [
        ("changes.storage", END - 690, True),
        ("changes.fabric", END - 690, True),
        ("changes.storage", END - 2_000, False),  # the run went on after it
        ("changes.storage", END - 400, False),  # it had stopped before
        ("changes.agents", END - 690, False),  # what slows nodes down stops no run
    ],
)
def test_a_change_counts_at_the_moment_when_the_run_stopped(entries: str, at: float, *, is_used: bool) -> None:
    change = event("maintenance of the filer began", at=at, entries=(entries,))
    assert (judged(change, stopped()).support is Support.TIME) is is_used


def test_a_change_stopped_no_run_whose_ranks_call_different_collectives() -> None:
    change = event("maintenance of the filer began", at=END - 690, entries=("changes.storage",))
    assert judged(change, stopped("pytorch.collectives-differ")).reason is not None


def test_the_node_of_the_slowest_rank_supports_what_slows_that_node_down() -> None:
    width = "pci 0000:17:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link"
    narrow = event(width, at=-50_000.0, entries=NARROW)
    waiting: dict[str, Any] = {"own_entries": [], "other_entries": WATCHDOG, "nodes": frozenset({"gpu1", "gpu2"})}
    assert judged(narrow, job(**waiting, slow_nodes=lambda: frozenset({"gpu1"}))).support is Support.SLOWER
    assert judged(narrow, job(**waiting, slow_nodes=lambda: frozenset({"gpu2"}))).reason is not None


def test_a_test_after_the_job_counts_where_the_log_shows_what_it_finds() -> None:
    found = event("gpu_burn: GPU 5: FAULTY", at=END + 7_200, entries=WRONG_RESULTS)
    differs = frozenset({"wordings.one-replica-differs"})
    assert judged(found, job(own_entries=[differs], other_entries=differs)).support is Support.LOG
    key_error = frozenset({"python.key-error"})
    assert judged(found, job(own_entries=[key_error], other_entries=key_error)).reason is Reason.LATER
    much_later = event("gpu_burn: GPU 5: FAULTY", at=END + 100_000, entries=WRONG_RESULTS)
    assert judged(much_later, job(own_entries=[differs], other_entries=differs)).reason is Reason.LATER


def test_processes_are_read_one_by_one_from_a_list() -> None:
    assert read_objects("epilog: killing processes of uid 2210: 7701 7702, 7703").pids == {"7701", "7702", "7703"}


def test_a_killed_process_of_the_job_counts_though_the_event_names_another_job() -> None:
    text = "epilog of job 5511: killing stray processes of uid 2210: 7701 7702"
    sigkill = frozenset({"pytorch.elastic-sigkill"})
    seen: dict[str, Any] = {"own_entries": [], "other_entries": sigkill}
    assert judged(event(text, entries=KILLED), job("exitcode: -9 (pid: 7702)", **seen)).support is Support.LOG
    assert judged(event(text, entries=KILLED), job("exitcode: -9 (pid: 8800)", **seen)).reason is Reason.OTHER_PROCESS


def chain(named: str, *, at: float = END - 600) -> list[Judgement]:
    """What is found of a change that names a check, and of that check's later failure, by which the node was lost."""
    change = event(f"{named} updated: 32 modules expected", at=at, source="change", entries=("changes.other",))
    text = "error: health check failed: check_dimm_count: 24 modules"
    failed = event(text, at=END - 20, source="slurmd", index=1, entries=("nodes.health-check",))
    seen = job(own_entries=[], other_entries=frozenset({"slurm.node-fail"}), status="node_fail")
    return judge([change, failed], [], seen)


def test_a_change_counts_that_names_what_later_fails() -> None:
    change, failed = chain("check_dimm_count")
    assert (change.support, change.explains) == (Support.SCHEDULER, (1,))
    assert failed.support is Support.SCHEDULER
    assert failed.explains == ()


def test_a_change_of_something_else_or_after_the_failure_does_not_count() -> None:
    assert chain("check_fan_speed")[0].reason is not None
    assert chain("check_dimm_count", at=END - 10)[0].reason is not None


def test_a_change_that_names_only_the_node_does_not_count() -> None:
    change = event("motd of gpu1 changed", at=END - 600, source="change", entries=("changes.other",))
    failed = event("error: health check failed: gpu1: fan", index=1, entries=("nodes.health-check",))
    seen = job(own_entries=[], other_entries=frozenset({"slurm.node-fail"}), status="node_fail")
    assert judge([change, failed], [], seen)[0].reason is not None


@pytest.mark.parametrize(
    ("text", "ahead_s"),
    [
        ("SEL clock was 3600 s ahead of the host's", 3_600.0),
        ("BMC clock is behind by 2 h", -7_200.0),
        ("BMC clock 1.5 min slow, set by NTP", -90.0),
        ("clock speed 1980 MHz, 20 s averages ahead", None),
        ("GPU clock reduced for 30 s", None),
    ],
)
def test_the_offset_of_a_clock_is_read_from_an_event_that_says_it(text: str, ahead_s: float | None) -> None:
    assert clock_ahead(text) == ahead_s
