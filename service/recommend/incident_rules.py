"""Rules of incidents: which failures form one, which held job is the probe, and when the others are released. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.recommend.policy_settings import Incident
from service.recommend.rules.pause import spread


@dataclass(frozen=True, slots=True)
class RecentFailure:
    """A failure within the incident window. `user` is "" where no user is known."""

    failure_id: int
    user: str
    lineage: str


@dataclass(frozen=True, slots=True)
class SharedFailures:
    """The recent failures that share one resource or fingerprint (`key`), with the settings of their cluster."""

    key: str
    settings: Incident
    failures: Sequence[RecentFailure]


@dataclass(frozen=True, slots=True)
class DetectedIncident:
    """Failures that form one incident over `key`. `jobs` counts lineages, `users` distinct users."""

    key: str
    failure_ids: tuple[int, ...]
    jobs: int
    users: int


def detect_incidents(
    candidates: Iterable[SharedFailures], in_an_incident: Collection[int] = ()
) -> list[DetectedIncident]:
    """The incidents among recent failures: one for each key with enough jobs of enough users.

    Jobs are counted by lineage, so that one job that is resubmitted and fails repeatedly is not an incident.

    Args:
        candidates: failures by key. A failure that shares several keys belongs to the first candidate that becomes
            an incident.
        in_an_incident: ids of failures that belong to an incident already; they are not counted again.
    """
    taken = set(in_an_incident)
    found: list[DetectedIncident] = []
    for candidate in candidates:
        members = [failure for failure in candidate.failures if failure.failure_id not in taken]
        jobs = {failure.lineage for failure in members}
        users = {failure.user for failure in members}
        if len(jobs) < candidate.settings.jobs or len(users) < candidate.settings.users:
            continue
        ids = tuple(failure.failure_id for failure in members)
        taken.update(ids)
        found.append(DetectedIncident(candidate.key, ids, len(jobs), len(users)))
    return found


def choose_probe(held: Sequence[str], tried: Collection[str]) -> int | None:
    """The position of the held job that is released first to test whether the incident is over.

    Args:
        held: lineages of the held jobs, the one with the fewest GPUs first.
        tried: lineages that were probes of this incident before; they are chosen only if no other is held.
    """
    if not held:
        return None
    return next((position for position, lineage in enumerate(held) if lineage not in tried), 0)


def release_times(lineages: Sequence[str], settings: Incident, start: datetime) -> list[datetime]:
    """When each held job may start once the incident is over: `pace_per_minute` from `start` on, with jitter.

    The same lineages in the same order get the same times.
    """
    interval_s = 60.0 / settings.pace_per_minute
    return [
        start + timedelta(seconds=max(0.0, (position + settings.pace_jitter * spread(lineage, position)) * interval_s))
        for position, lineage in enumerate(lineages)
    ]
