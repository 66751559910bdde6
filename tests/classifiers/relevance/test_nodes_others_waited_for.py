"""Trouble of the node for which the others waited."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

BEGAN = datetime(2026, 11, 20, 9, tzinfo=UTC)
LOAD = "monitoring: load5 1730 on 96 cores, mostly of another user's render job"
STEPS = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} of 900, 4 files/s\n" for minute in range(1, 36))
GAVE_UP = (
    "Error: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete\n"
)


def beginnings(*, node: str = "k2", minute: int = 3, second: str = STEPS) -> list[str]:
    job = JobFacts(
        status="failed", nodes=("k1", "k2"), gpus=16, started_at=BEGAN, ended_at=BEGAN + timedelta(minutes=36)
    )
    logs = (LogStream(GAVE_UP, rank=0, node="k1"), LogStream(second, rank=8, node="k2"))
    load = NodeEvent(LOAD, BEGAN + timedelta(minutes=minute), node, "monitor")
    items = EXTRACTOR.extract(RawCase(job, logs, node_events=(load,))).items
    return [item.text for item in items if item.role == "initiating"]


def test_load_on_the_node_that_was_still_at_work_is_what_the_others_waited_for() -> None:
    assert beginnings()[0] == LOAD


@pytest.mark.parametrize(
    "case",
    [
        {"node": "k1"},  # of a node that waited as well
        {"minute": -60},  # long before the job
        {"second": STEPS + GAVE_UP},  # it waited as well
    ],
)
def test_load_elsewhere_or_at_another_time_is_not(case: dict[str, object]) -> None:
    assert LOAD not in beginnings(**case)  # type: ignore[arg-type]
