"""A job id that a cluster uses again is another job; restarts and array tasks are the same one."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.formats.recognise import parse
from service.jobs.same_job import runs_of_job, same_job

FORMATS = Path(__file__).parents[2] / "data" / "formats"
END = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Attempt:
    user: str | None = "ana"
    name: str | None = "vit"
    pod: str | None = None
    attempt: int | None = 0
    submitted_at: datetime | None = END - 3 * HOUR
    started_at: datetime | None = END - 2 * HOUR
    ended_at: datetime = END


FIRST = Attempt()


def later(hours: float, **changes: Any) -> Attempt:
    """An attempt that was submitted so many hours after the end of the first one."""
    at = END + hours * HOUR
    times = {"submitted_at": at, "started_at": at + HOUR, "ended_at": at + 2 * HOUR}
    return replace(FIRST, **(times | changes))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (later(0.01), True),
        (later(0.01, attempt=1), True),
        (later(30, submitted_at=FIRST.submitted_at), True),
        (later(30, attempt=1), True),
        (later(24 * 24), False),
        (later(24 * 24, attempt=1), False),
        (later(30), False),
        (later(0.01, user="bo"), False),
        (later(0.01, name="bert"), False),
        (later(0.01, user=None, name=None), True),
        (later(30, submitted_at=None), True),
        (later(24 * 24, submitted_at=None), False),
        (later(0.01, user=None, name="vit-worker-0", pod="vit-worker-0"), True),
    ],
)
def test_which_attempts_are_of_the_same_job(other: Attempt, *, same: bool) -> None:
    assert same_job(FIRST, other) is same
    assert same_job(other, FIRST) is same


def test_many_restarts_stay_one_job_and_a_reused_id_starts_another() -> None:
    restarts = [later(240 * number, attempt=number) for number in range(1, 5)]
    reused = later(24 * 90)
    runs = [FIRST, *restarts, reused]
    assert runs_of_job(runs, FIRST) == (FIRST, *restarts)
    assert runs_of_job(runs, restarts[-1]) == (FIRST, *restarts)
    assert runs_of_job(runs, reused) == (reused,)


def test_two_users_between_each_other_are_two_jobs() -> None:
    other = later(0.2, user="bo")
    again = later(0.4, attempt=1)
    assert runs_of_job([FIRST, other, again], FIRST) == (FIRST, again)
    assert runs_of_job([FIRST, other, again], other) == (other,)


def slurm(name: str, **changes: Any) -> JobCompletion:
    """A recorded Slurm record, changed as the scheduler writes it for another attempt."""
    record = json.loads((FORMATS / f"{name}.json").read_text()) | changes
    found = parse(json.dumps(record).encode(), cluster="aurora")
    assert isinstance(found, JobCompletion)
    return found


def test_a_restart_by_slurm_is_the_same_job() -> None:
    first = slurm("slurm", state="NODE_FAIL")
    again = slurm(
        "slurm", **{"@submit": "2026-11-18T11:30:13", "@start": "2026-11-18T11:35:00", "@end": "2026-11-18T13:00:00"}
    )
    reused = slurm(
        "slurm", **{"@submit": "2026-12-20T11:30:13", "@start": "2026-12-20T11:35:00", "@end": "2026-12-20T13:00:00"}
    )
    assert first.job_id == again.job_id == reused.job_id
    assert same_job(first, again)
    assert not same_job(first, reused)


def test_tasks_of_an_array_have_ids_of_their_own() -> None:
    one, two = slurm("slurm_array"), slurm("slurm_array", jobid=31906, array_task_id=5)
    assert one.job_id != two.job_id
    restarted = slurm(
        "slurm_array",
        **{"@submit": "2026-11-18T11:31:00", "@start": "2026-11-18T11:40:00", "@end": "2026-11-18T12:40:00"},
    )
    assert same_job(one, restarted)
