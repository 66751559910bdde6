from datetime import datetime, timedelta
from typing import Any

import pytest

from service.contracts.event import from_object
from service.jobs.new_job import content_digest, gpu_hours_lost, new_job
from tests.service.sample_rows import NOON


def event(**changes: Any) -> dict[str, Any]:
    return {
        "cluster": "orion",
        "job_id": "1",
        "status": "failed",
        "gpus": 8,
        "started_at": (NOON - timedelta(hours=2)).isoformat(),
        "ended_at": NOON.isoformat(),
    } | changes


def at(**before: float) -> str:
    return (NOON - timedelta(**before)).isoformat()


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({}, 16.0),
        ({"status": "succeeded"}, 0.0),
        ({"gpus": 0}, 0.0),
        ({"gpus": None}, 0.0),
        ({"started_at": None}, 0.0),
        ({"checkpoint": {"at": at(minutes=30)}}, 4.0),
        ({"checkpoint": {"at": at(hours=3)}}, 16.0),
        ({"checkpoint": {"at": at(hours=-1)}}, 16.0),
        ({"checkpoint": {"step": 3}}, 16.0),
        ({"started_at": at(hours=-1)}, 0.0),
    ],
)
def test_gpu_hours_lost(changes: dict[str, Any], hours: float) -> None:
    assert gpu_hours_lost(from_object(event(**changes))) == hours


def test_the_digest_depends_on_content_and_not_on_notation() -> None:
    plain = content_digest(from_object(event()))
    assert len(plain) == 16
    assert plain == content_digest(from_object(dict(reversed(event().items()))))
    assert plain == content_digest(from_object(event(name=None, nodes=None)))
    assert plain != content_digest(from_object(event(name="x")))
    assert plain != content_digest(from_object(event(logs=[{"tail": "x"}])))


def test_the_row_of_an_event() -> None:
    given = from_object(event(user="ana", nodes=["gpu1"], attempt=3, ended_at=(NOON + timedelta(days=3)).isoformat()))
    row = new_job(given, now=NOON, diagnosed=True)
    assert (row.event_id, row.digest, row.diagnosed) == (given.key(), content_digest(given), True)
    assert (row.user, row.nodes, row.attempt, row.clock_suspect) == ("ana", ("gpu1",), 3, True)
    assert isinstance(row.received_at, datetime)
