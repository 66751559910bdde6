"""A part that lost speed is evidence where the steps of the job took longer from then on."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.observations.slow_nodes import slow_nodes
from classifiers.extraction.stream_reader import StreamText
from classifiers.extraction.training_progress import slowed_since
from classifiers.relevance.event_candidates import JobEvidence, Reason, Support
from tests.classifiers.relevance.test_node_events import END, event, job, judged

BEGAN = datetime(2026, 11, 20, 9, tzinfo=UTC)
ENDED = BEGAN + timedelta(hours=1)
DEGRADED = "link leaf-3/11 <-> gpu1 mlx5_2: active width 1X speed 25.78125 Gbps (supported 4X 53.125 Gbps)"
LINK = ("network.link-degraded",)
SLOWED_AT = END - 3_000


def slowed(at: float | None = SLOWED_AT, status: str = "timeout") -> JobEvidence:
    return job(own_entries=[], other_entries=frozenset(), failed=None, status=status, slowed=lambda: at)


def test_a_link_that_lost_speed_is_supported_by_slower_steps() -> None:
    degraded = event(DEGRADED, at=SLOWED_AT - 60, entries=LINK)
    assert judged(degraded, slowed()).support is Support.SLOWER
    assert judged(degraded, slowed(None)).reason is Reason.NO_TRACE


@pytest.mark.parametrize(("before_s", "is_used"), [(-600, True), (800, True), (1_000, False), (-1_000, False)])
def test_steps_that_slowed_down_at_another_time_support_nothing(before_s: float, *, is_used: bool) -> None:
    degraded = event(DEGRADED, at=SLOWED_AT - before_s, entries=LINK)
    assert (judged(degraded, slowed()).support is Support.SLOWER) is is_used


def test_slower_steps_support_only_what_slows_a_job_down() -> None:
    flaps = event("mlx5_core 0000:81:00.0 mlx5_2: symbol errors", at=SLOWED_AT - 60, entries=("network.ib-flap",))
    crash = event("python3[71]: segfault at 0", at=SLOWED_AT - 60, entries=("python.segfault",))
    assert Support.SLOWER not in {judged(one, slowed()).support for one in (flaps, crash)}


@pytest.mark.parametrize(
    ("before_s", "node", "is_used"), [(60, "gpu1", True), (600, "gpu1", False), (60, "gpu2", False)]
)
def test_a_disk_of_the_job_slows_its_steps_at_once(before_s: float, node: str, *, is_used: bool) -> None:
    text = "nvme nvme3: I/O 81 QID 4 timeout, aborting"
    disk = event(text, at=SLOWED_AT - before_s, node=node, entries=("storage.nvme",))
    assert (judged(disk, slowed()).support is Support.SLOWER) is is_used


def test_a_link_that_is_said_to_work_again_has_not_recovered_while_steps_stay_slow() -> None:
    degraded = event(DEGRADED, at=SLOWED_AT - 60, entries=LINK)
    up = event("mlx5_core 0000:81:00.0 mlx5_2: Port: 1 Link up", at=SLOWED_AT - 30, index=1, entries=())
    assert judged(degraded, slowed(), [up]).support is Support.SLOWER
    assert judged(degraded, slowed(None), [up]).reason is Reason.RECOVERED


def log_with(seconds_per_step: int) -> str:
    """A log of twenty steps of 10 s and ten of so many, and of the end by the time limit."""
    times = [BEGAN + timedelta(seconds=10 * number) for number in range(20)]
    times += [times[-1] + timedelta(seconds=seconds_per_step * number) for number in range(1, 11)]
    steps = "".join(f"{at:%Y-%m-%d %H:%M:%S} step {number} loss 2.0\n" for number, at in enumerate(times))
    return steps + f"{ENDED:%Y-%m-%d %H:%M:%S} CANCELLED DUE TO TIME LIMIT\n"


@pytest.mark.parametrize(("seconds_per_step", "leads"), [(60, True), (10, False)])
def test_a_degraded_link_leads_the_time_limit_only_where_the_steps_got_slower(
    extractor: Extractor, seconds_per_step: int, *, leads: bool
) -> None:
    facts = JobFacts("timeout", nodes=("gpu1",), started_at=BEGAN, ended_at=ENDED)
    degraded = NodeEvent(DEGRADED, BEGAN + timedelta(seconds=180), "gpu1", "opensm")
    found = extractor.extract(RawCase(facts, (LogStream(log_with(seconds_per_step)),), node_events=(degraded,))).items
    assert (found[0].text == DEGRADED) is leads
    assert any(item.text == DEGRADED for item in found) is leads


def test_a_run_that_gave_each_step_more_work_was_not_slowed_down(extractor: Extractor) -> None:
    lines = log_with(60).splitlines(keepends=True)
    raised = "".join([*lines[:20], "schedule: sequence length 512 -> 4096\n", *lines[20:]])
    facts = JobFacts("timeout", nodes=("gpu1",), started_at=BEGAN, ended_at=ENDED)
    degraded = NodeEvent(DEGRADED, BEGAN + timedelta(seconds=180), "gpu1", "opensm")
    for text, is_slowed in (("".join(lines), True), (raised, False)):
        items = extractor.extract(RawCase(facts, (LogStream(text),), node_events=(degraded,))).items
        slower = any(hit.id == "wordings.late-because-slower" for item in items for hit in item.hits)
        assert (slower, items[0].text == DEGRADED) == (is_slowed, is_slowed)


def test_a_gap_between_two_attempts_is_no_slow_step() -> None:
    first = [BEGAN + timedelta(seconds=10 * number) for number in range(20)]
    second = [first[-1] + timedelta(seconds=900 + 60 * number) for number in range(8)]
    text = "".join(f"{at:%Y-%m-%d %H:%M:%S} step {number} loss 2.0\n" for number, at in enumerate([*first, *second]))
    assert slowed_since(text) == time_of(f"{second[0]:%Y-%m-%d %H:%M:%S} x")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("STRAGGLER WARNING: Affected ranks: [(8, 'gpu2', 0.31), (9, 'gpu2', 0.33)] are slower than", {"gpu2"}),
        ("slowest ranks: 8 9 10 11 on gpu2, 4.1 times the median", {"gpu2"}),
        ("slowest ranks: 1 (gpu1) and 9 (gpu2)", set()),
        ("slowest rank: 9 on gpu2", set()),  # one rank may be slow by chance
    ],
)
def test_ranks_that_are_called_slow_name_their_node_if_it_is_one(line: str, found: set[str]) -> None:
    stream = StreamText(0, line, LogStream(line, rank=0, node="gpu1"), [])
    assert slow_nodes([stream], frozenset({"gpu1", "gpu2"})) == found


def test_a_guard_that_stops_a_slow_run_is_a_limit_as_that_of_a_scheduler(extractor: Extractor) -> None:
    text = log_with(60).replace("CANCELLED DUE TO TIME LIMIT", "RuntimeError: samples/s 10 below 40, aborting the run")
    link = NodeEvent(DEGRADED, node="gpu1", at=BEGAN + timedelta(seconds=180), source="ib")
    raw = RawCase(
        job=JobFacts(status="failed", nodes=("gpu1",), started_at=BEGAN, ended_at=ENDED),
        streams=(LogStream(text, rank=0, node="gpu1"),),
        node_events=(link,),
    )
    assert next(item.text for item in extractor.extract(raw).items if item.role == "initiating") == DEGRADED
