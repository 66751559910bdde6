"""A hand-made stream of attempts with known answers, around the week that ends with the change from summer time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service import weeks
from service.db.session import Store
from service.jobs.records import NewJob
from service.resubmissions.records import LineageMember
from service.resubmissions.repository.lineages import key_of
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put, succeeded

BERLIN = ZoneInfo("Europe/Berlin")
WEEK = weeks.parse("2026-W43")
FIRST, LAST = datetime(2026, 10, 18, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC)  # 169 hours
HARDWARE: dict[str, object] = {"side": "hardware", "cause": "HW.GPU.2"}
SYSTEM: dict[str, object] = {"side": "system", "cause": "SYS.5", "platform_symptom": "hang"}
DELAY = timedelta(seconds=90)  # from the end of an attempt to its verdict


def at(hours: float) -> datetime:
    """A time after the start of the week."""
    return FIRST + timedelta(hours=hours)


def attempt(make: Callable[..., NewJob], name: str, start: float, end: float, size: int, **more: object) -> NewJob:
    """An attempt of a job `name` (up to the first dot) from hour `start` to hour `end`, on one node per 8 GPUs."""
    ended = at(end)
    lost = more.pop("lost_h", None)
    return make(
        name,
        **{
            "job_id": name.partition(".")[0],
            "started_at": at(start),
            "submitted_at": at(start),
            "ended_at": ended,
            "received_at": ended + timedelta(seconds=5),
            "gpus": size,
            "nodes": tuple(f"n{number}" for number in range(max(size // 8, 1))),
            "gpu_hours_lost": 0.0 if make is succeeded else size * (end - start if lost is None else float(str(lost))),
            **more,
        },
    )


# Each with the changes to the verdict of `sample_rows.verdict`, which is a user-side failure without them.
STREAM: list[tuple[NewJob, dict[str, object]]] = [
    # A job that succeeds; it waited two hours in the queue.
    (attempt(succeeded, "a", 0, 10, 8, submitted_at=at(-2)), {}),
    # A job that is retried: one hour is lost since its checkpoint, and it runs again after half an hour.
    (attempt(job, "b.0", 1, 5, 16, lost_h=1), HARDWARE),
    (attempt(succeeded, "b.1", 5.5, 30, 16, submitted_at=at(1)), {}),
    # A job that its owner resubmits as another one, an hour after the failure; that one waits half an hour.
    (attempt(job, "c", 2, 3, 4), {}),
    (attempt(succeeded, "c2", 4.5, 6.5, 4, submitted_at=at(4), resubmit_of="c"), {}),
    # A hang whose last progress was two hours before its end, requeued twice.
    (attempt(job, "d.0", 10, 15, 32), SYSTEM | {"progress": {"step": 7, "checkpoint": None, "at": at(13).isoformat()}}),
    (attempt(job, "d.1", 16, 17, 32), HARDWARE),
    (attempt(succeeded, "d.2", 17.25, 20, 32), {}),
    # Apart from failures.
    (attempt(job, "e", 20, 24, 8, status="preempted"), HARDWARE | {"cause": "HW.NODE.3"}),
    (attempt(job, "f", 21, 23, 8, status="cancelled", diagnosed=False), {}),
    # An undecided verdict, and a failure without a verdict.
    (attempt(job, "g", 30, 31, 1), HARDWARE | {"abstained": True}),
    (attempt(job, "h", 30, 32, 1, diagnosed=False), {}),
    # Size or start unknown.
    (attempt(job, "i", 30, 31, 0, lost_h=0, gpus=None), {}),
    (attempt(succeeded, "j", 30, 31, 8, started_at=None), {}),
    # The edges of the week: the first and the last moment are inside, the next week's first is not.
    (attempt(succeeded, "k", -6, 0, 8), {}),
    (attempt(job, "l", 168.5, 169 - 1 / 3600, 8), HARDWARE),
    (attempt(job, "m", 168, 169, 64), HARDWARE),
    (attempt(succeeded, "n", -6, -1 / 3600, 64), {}),
    # In the hour that the change of time repeats.
    (attempt(succeeded, "o", 144.5, 147.5, 8), {}),
    # Another user's job with the id of a failed one is another run; another team and cluster.
    (attempt(succeeded, "c.other", 50, 51, 4, user="bo"), {}),
    (attempt(job, "p", 60, 61, 8, team="nlp", queue="short"), HARDWARE),
    (attempt(job, "q", 60, 62, 8, cluster="vega"), HARDWARE),
]


def fill(store: Store, clock: FrozenClock, *, backwards: bool = False) -> None:
    """Store the stream, each failure with its verdict after `DELAY`; `backwards`: the last end arrives first."""
    with store.unit_of_work() as work:
        work.lineages.join({("orion", "c2"): LineageMember(key_of("orion", "c"), "c")})
    for row, verdict in reversed(STREAM) if backwards else STREAM:
        clock.at = row.ended_at + DELAY
        put(store, [row], **verdict)
