"""Composes harmless node events around a job from the entries of `classifiers/data/noise/node_events`.

A sequence is never cut: what makes it harmless is often its last event. Trouble that recovered ends well before the
job does, or lies before or after it; otherwise nobody could call it harmless.
"""

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.data import noise_data
from classifiers.data.noise_data import NoiseEntry, Reason, Span, Use
from classifiers.node_names import short_name

# Trouble on the job's own nodes that would be a suspect if it were close to the job's end.
_NEEDS_DISTANCE: Final = frozenset({"recovered"})
_QUIET_SHARE: Final = 0.2  # of the run, after trouble that recovered (judgement)
_QUIET_LEAST_S: Final = 600.0
_BEFORE: Final[Span] = (1_200.0, 43_200.0)  # seconds before the job, for what may happen at any time
_AFTER: Final[Span] = (120.0, 10_800.0)
_EARLY_LEAST_S: Final = 7_200.0  # a run shorter than this has no early part
_EARLY: Final[Span] = (0.02, 0.3)  # share of the run
_EARLY_END: Final = 0.6
_PERIODS: Final = ("before", "during", "after")
_PERIOD_WEIGHTS: Final = (0.35, 0.45, 0.2)
# Names of machines that are neither nodes nor switches, by the source of their events.
_SERVERS: Final = {
    **dict.fromkeys(("storage", "ceph", "gpfs", "beegfs", "weka", "minio"), "store"),
    **dict.fromkeys(("slurm", "etcd", "kubernetes"), "controller"),
}
_KERNEL_PREFIXES: Final = ("", "", "$kts ", "$sys $node kernel: ")
_DIGITS: Final = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, slots=True)
class Job:
    """The job that the events surround: aware times, at least one node."""

    started: datetime
    ended: datetime
    nodes: tuple[str, ...]
    job_id: str

    @property
    def duration(self) -> float:
        """Its duration in seconds, at least 0."""
        return max(0.0, (self.ended - self.started).total_seconds())


def compose(
    job: Job, rng: random.Random, count: int, use: Use, reasons: Collection[Reason] | None = None
) -> list[dict[str, Any]]:
    """Return about `count` harmless events as `node_events` of job-completion/1, ordered by time.

    Args:
        job: the job.
        rng: the source of all choices.
        count: how many events; the last sequence may exceed it where no shorter one fits.
        use: which half of the entries.
        reasons: only entries that are harmless for these reasons.

    Raises:
        ValueError: no entry has such a reason and fits the job.
    """
    chosen = _fitting(job, use, reasons)
    if not chosen:
        raise ValueError(f"no harmless entries for {sorted(reasons or ())} around a run of {job.duration:.0f} s")
    longest = max(len(candidate.events) for candidate in chosen)
    prefix = rng.choice(_KERNEL_PREFIXES)
    events: list[dict[str, Any]] = []
    while len(events) < count:
        left = count - len(events)
        some = chosen if left >= longest else [candidate for candidate in chosen if len(candidate.events) <= left]
        entry = rng.choice(some or chosen)
        events += write(entry, job, rng, prefix)
    return sorted(events, key=lambda event: str(event["at"]))


def has_entries(job: Job, use: Use, reasons: Collection[Reason] | None = None) -> bool:
    """Whether there are entries for a job: a short run has no early part that it survived."""
    return bool(_fitting(job, use, reasons))


def write(entry: NoiseEntry, job: Job, rng: random.Random, kernel_prefix: str = "") -> list[dict[str, Any]]:
    """Return the events of one entry around a job, with values filled in."""
    gaps = [0.0] + [rng.uniform(*event.after) for event in entry.events[1:]]
    at = _begin(entry, job, sum(gaps), rng)
    synthetic = SyntheticValues(rng)
    synthetic.known |= _values(job, rng)
    if entry.where != "own":
        synthetic.known["node"] = synthetic.known["othernode"]
    node = synthetic.known["node"]
    if entry.where == "switch":
        node = synthetic.known[_SERVERS.get(entry.source, "switch")]
    synthetic.boot = job.started - timedelta(days=rng.uniform(3, 90))
    events = []
    for event, gap in zip(entry.events, gaps, strict=True):
        at += timedelta(seconds=gap)
        synthetic.now = at
        prefix = kernel_prefix if event.source == "kernel" else ""
        # Formatted first: filling advances the clock.
        when = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        events.append({"at": when, "node": node, "source": event.source, "text": synthetic.fill(prefix + event.text)})
    return events


def job_of(event: Mapping[str, Any]) -> Job:
    """Return the job of an event that has nodes and both times (`noise.complete` adds them)."""
    started, ended = (datetime.fromisoformat(str(event[name])) for name in ("started_at", "ended_at"))
    return Job(_utc(started), _utc(ended), tuple(event["nodes"]), str(event.get("job_id") or "1"))


def other_name(nodes: Sequence[str], rng: random.Random) -> str:
    """Return the name of a node that is not among `nodes` and is written like them."""
    known = {short_name(node) for node in nodes}
    name = rng.choice(nodes)
    for _ in range(50):
        found = _DIGITS.search(name)
        if found is None:
            other = f"{name}{rng.randint(2, 99)}"
        else:
            width = len(found[1])
            number = rng.randrange(1, max(10**width, 100))
            other = f"{name[: found.start()]}{number:0{width}d}{name[found.end() :]}"
        if short_name(other) not in known:
            return other
    return f"spare{rng.randint(100, 999)}"


def _fitting(job: Job, use: Use, reasons: Collection[Reason] | None) -> list[NoiseEntry]:
    return [
        entry
        for entry in noise_data.node_entries(use)
        if (reasons is None or entry.reason in reasons) and (entry.when != "early" or job.duration >= _EARLY_LEAST_S)
    ]


def _begin(entry: NoiseEntry, job: Job, length: float, rng: random.Random) -> datetime:
    """Return the time of the first event of a sequence that lasts `length` seconds."""
    period: str = entry.when
    if period == "early":
        lowest = _EARLY[0] * job.duration
        highest = max(lowest, min(_EARLY[1] * job.duration, _EARLY_END * job.duration - length))
        return job.started + timedelta(seconds=rng.uniform(lowest, highest))
    if period == "any":
        period = rng.choices(_PERIODS, _PERIOD_WEIGHTS)[0]
        room = job.duration - length
        if entry.reason in _NEEDS_DISTANCE:
            room -= max(_QUIET_LEAST_S, _QUIET_SHARE * job.duration)
        if period == "during" and room > 0:
            return job.started + timedelta(seconds=rng.uniform(0, room))
        if period == "during":
            period = "before"
        distance = _BEFORE if period == "before" else _AFTER
    else:
        distance = entry.distance
    if period == "after":
        return job.ended + timedelta(seconds=rng.uniform(*distance))
    return job.started - timedelta(seconds=rng.uniform(*distance) + length)


def _values(job: Job, rng: random.Random) -> dict[str, str]:
    """Return the values of one entry that SyntheticValues does not know, the same in all its events."""
    kind = rng.choice(["notebook", "api-server", "preprocess", "eval", "web", "etl"])
    return {
        "node": rng.choice(job.nodes),
        "job": job.job_id,
        "othernode": other_name(job.nodes, rng),
        "otherjob": _other_job(job.job_id, rng),
        "otheruser": rng.choice(["hkato", "lfischer", "rnovak", "sdiaz", "tmeyer", "wlund", "yberg", "zadams"]),
        "otheruid": str(rng.randint(20_000, 69_999)),
        "otherns": rng.choice(["team-search", "analytics", "web-prod", "staging", "genomics"]),
        "otherpod": f"{kind}-{rng.getrandbits(36):09x}-{rng.choice('bcdfg')}{rng.getrandbits(16):04x}",
        "hca": f"mlx5_{rng.randint(0, 7)}",
        "serial": f"{rng.randint(10**12, 10**13 - 1)}",
        "disk": f"sd{rng.choice('bcdefgh')}",
        "nvme": f"nvme{rng.randint(1, 7)}",
        "store": f"store{rng.randint(1, 24):02d}",
        "controller": f"ctl{rng.randint(1, 3)}",
        "switch": f"{rng.choice(['leaf', 'spine', 'ib-l', 'tor'])}{rng.randint(1, 48):02d}",
        "unit": str(rng.randint(1, 12)),
        "psu": str(rng.randint(1, 4)),
        "fan": str(rng.randint(1, 8)),
        "dimm": f"DIMM_{rng.choice('ABCDEFGH')}{rng.randint(1, 2)}",
        "cpu": str(rng.randint(0, 127)),
        "peer": str(rng.randint(1, 7)),
    }


def _other_job(job_id: str, rng: random.Random) -> str:
    """Return the id of another job, near the number of this one where it is a number."""
    number = int(job_id) if job_id.isdigit() and len(job_id) < 12 else rng.randint(10_000, 9_000_000)
    return str(max(1, number - rng.randint(1, 900)) if number > 1_000 else number + rng.randint(1, 900))


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
