"""When many failures are one incident, who goes first when it may be over, and when each of the rest goes. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.recommend.facts import Outcome
from service.recommend.policy_settings import Incident
from service.recommend.rules.pause import spread

# A resource that the whole cluster shares says nothing: whoever lists resources leaves such out.
RESOURCE_KINDS = ("fingerprint", "node", "rack", "switch", "filesystem", "registry", "image")


@dataclass(frozen=True, slots=True)
class Recent:
    """A failure of late as folding reads it.

    `keys` are what it may share with others, each `kind:value` (`fingerprint:1:ab12`, `switch:leaf3`,
    `filesystem:/lustre`), all of one cluster.
    """

    failure_id: int
    at: datetime
    user: str | None
    lineage: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Failures that are one incident over one key."""

    key: str
    failures: tuple[int, ...]
    jobs: int
    users: int


def fold(recent: Iterable[Recent], settings: Incident, now: datetime) -> list[Folded]:
    """The incidents among the failures of the window: for each shared key with enough jobs of enough users, one.

    Jobs are counted by lineage, so one job that fails over and over is no incident. A failure belongs to one incident:
    the one with the most jobs, a fingerprint before a resource where both have as many.
    """
    since = now - timedelta(minutes=settings.window_minutes)
    by_key: dict[str, list[Recent]] = defaultdict(list)
    for one in recent:
        if since <= one.at <= now:
            for key in set(one.keys):
                by_key[key].append(one)
    found: list[Folded] = []
    taken: set[int] = set()
    ordered = sorted(by_key, key=lambda key: (-len({one.lineage for one in by_key[key]}), _order(key), key))
    for key in ordered:
        members = [one for one in by_key[key] if one.failure_id not in taken]
        jobs = {one.lineage for one in members}
        users = {one.user for one in members if one.user is not None}
        if len(jobs) >= settings.jobs and len(users) >= settings.users:
            taken.update(one.failure_id for one in members)
            found.append(Folded(key, tuple(one.failure_id for one in members), len(jobs), len(users)))
    return found


def _order(key: str) -> int:
    kind = key.partition(":")[0]
    return RESOURCE_KINDS.index(kind) if kind in RESOURCE_KINDS else len(RESOURCE_KINDS)


def probe_due(opened_at: datetime, last_probe_at: datetime | None, settings: Incident, now: datetime) -> bool:
    """Whether a job may go first to see whether it is over: some time after it opened or the last probe went."""
    return now - (last_probe_at or opened_at) >= timedelta(minutes=settings.probe_minutes)


def probe(waiting: Sequence[tuple[str, int | None]]) -> str | None:
    """Which of the held jobs (key, gpus) goes first: the smallest, the first of those in the order given."""
    if not waiting:
        return None
    sized = [(gpus if gpus is not None else 1, place) for place, (_, gpus) in enumerate(waiting)]
    return waiting[min(sized)[1]][0]


def opened_by(probed: Outcome | None, running_since: datetime | None, settings: Incident, now: datetime) -> bool | None:
    """Whether a probe says that the incident is over: True, False, or None while it can't be told.

    A probe that ended well or got past the point says yes; one that failed the same way says no; one that has run for
    `probe_wait_minutes` without failing says yes; one that failed otherwise, or whose end is not known, tells nothing.
    """
    if probed in {"succeeded", "got_past"}:
        return True
    if probed == "failed_same":
        return False
    if probed is None and running_since is not None:
        return True if now - running_since >= timedelta(minutes=settings.probe_wait_minutes) else None
    return None


def turns(keys: Sequence[str], settings: Incident, start: datetime) -> Mapping[str, datetime]:
    """When each held job goes once the incident is over: so many a minute from `start` on, each a little off its beat.

    The same jobs in the same order get the same times.
    """
    beat = 60 / settings.pace_per_minute
    return {
        key: start + timedelta(seconds=max(0.0, beat * (place + settings.pace_jitter * spread(key, place))))
        for place, key in enumerate(keys)
    }
