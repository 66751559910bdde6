"""Changes when steps became slower or before a run that never began, and disks that no line names."""

from typing import Any

import pytest

from classifiers.relevance.event_candidates import JobEvidence, Reason, Support
from classifiers.relevance.event_times import blocked_for
from tests.classifiers.relevance.test_node_events import END, event, job, judged

WATCHDOG = frozenset({"pytorch.nccl-watchdog-timeout"})
NO_SPACE = frozenset({"python.no-space"})
SLOWED_AT = END - 3_000
FULL = event("WARNING: /work9 99% used", entries=("storage.mount-full",))


def slow() -> JobEvidence:
    limit = frozenset({"slurm.time-limit"})
    return job(own_entries=[limit], other_entries=limit, failed=None, status="timeout", slowed=lambda: SLOWED_AT)


@pytest.mark.parametrize(
    ("text", "at", "is_used"),
    [
        ("salt: gpu1: power profile applied", SLOWED_AT - 60, True),
        ("salt: gpu7: power profile applied", SLOWED_AT - 60, False),  # another node
        ("salt: gpu1: power profile applied", SLOWED_AT - 2_000, False),
    ],
)
def test_any_change_of_a_node_of_the_job_counts_when_its_steps_became_slower(
    text: str, at: float, *, is_used: bool
) -> None:
    change = event(text, at=at, node="ctl", source="change", entries=("changes.other",))
    assert (judged(change, slow()).support is Support.SLOWER) is is_used


@pytest.mark.parametrize(
    ("changed", "is_used"),
    [
        ({}, True),
        ({"last_progress": END - 900}, False),
        ({"own_entries": [frozenset({"python.key-error"})]}, False),
        ({"started": 10.0}, False),  # it ran before the change
    ],
)
def test_a_network_change_of_a_node_explains_a_run_that_never_began(changed: dict[str, Any], *, is_used: bool) -> None:
    values: dict[str, Any] = {"own_entries": [], "other_entries": WATCHDOG, "started": 3_000.0, "last_progress": None}
    change = event("salt: eth4 mtu 1500 on gpu1", at=900, node="ctl", source="change", entries=("changes.network",))
    assert (judged(change, job(**(values | changed))).reason is None) is is_used


@pytest.mark.parametrize(("names_paths", "is_used"), [(False, True), (True, False)])
def test_a_full_disk_counts_where_the_failing_line_names_no_path(*, names_paths: bool, is_used: bool) -> None:
    seen = job(own_entries=[NO_SPACE], other_entries=NO_SPACE, names_paths=names_paths)
    assert (judged(FULL, seen).reason is None) is is_used


def test_a_client_of_a_file_server_on_another_node_says_nothing_of_the_job() -> None:
    error = frozenset({"python.io-error"})
    seen = job(own_entries=[error], other_entries=error)
    for text, reason in (
        ("kernel: nfs: server nas4 not responding, timed out", Reason.OTHER_NODE),
        ("LustreError: ost 3 of the server went away", None),
    ):
        assert judged(event(text, node="oss-3", entries=("storage.lustre",)), seen).reason is reason


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("INFO: task python:7 blocked for more than 122 seconds.", 122.0),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [x:7]", 26.0),
        ("eth4: link down", 0.0),
    ],
)
def test_a_kernel_reports_what_stands_still_some_time_later(text: str, seconds: float) -> None:
    assert blocked_for(text) == seconds


def test_ranks_in_different_collectives_wait_for_no_event() -> None:
    waiting: dict[str, Any] = {"own_entries": [], "last_progress": END - 700, "stalled": END - 650}
    hung = event("INFO: task x:7 blocked", at=END - 690, entries=("kernel.hung-task",))
    assert judged(hung, job(**waiting, other_entries=WATCHDOG)).reason is None
    differ = WATCHDOG | {"observation.collectives-differ"}
    own = [WATCHDOG | {"pytorch.collectives-differ"}]
    assert judged(hung, job(**(waiting | {"own_entries": own}), other_entries=differ)).reason is Reason.NOT_SHOWN
