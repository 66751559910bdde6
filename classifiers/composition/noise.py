"""Adds harmless node events and neutral log lines to a job-completion/1 event; the failure and its labels stay."""

import random
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from classifiers.composition import log_noise, node_noise
from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.data.noise_data import Reason, Use

MOST_EVENTS: Final = 200
_BLOCKS: Final = 12  # of neutral lines for each log
_LAST_KNOWN: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)  # end of a job without times
# Judgement: seconds before the end, of a node event without a time. What a job dies of happens just before its end.
_FAULT_BEFORE_END: Final = (1.0, 40.0)
_FRAMEWORKS_WITH_PEERS: Final = frozenset({"pytorch", "deepspeed"})


@dataclass(frozen=True, slots=True)
class Noise:
    """How much is added to an event.

    Attributes:
        use: "fit" for training, "measure" for figures: two halves of the entries.
        node_events: how many node events; None draws 1 to 200, small numbers more often.
        reasons: only entries that are harmless for these reasons; None: all.
        log_blocks: at most so many blocks of neutral lines for each log; 0 leaves the logs as they are.
    """

    use: Use = "measure"
    node_events: int | None = None
    reasons: Collection[Reason] | None = None
    log_blocks: int = _BLOCKS


def complete(event: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy of an event with nodes and times, as schedulers and collectors always give them.

    Node events without a node belong to the first node; those without a time happened just before the job's end, as
    what a job dies of does.
    """
    done = deepcopy(dict(event))
    logs = done.get("logs") or ()
    named = [log.get("node") for log in (*logs, *(done.get("node_events") or ())) if log.get("node")]
    nodes = [str(node) for node in done.get("nodes") or dict.fromkeys(named)] or [SyntheticValues(rng).get("node")]
    done["nodes"] = nodes
    started, ended = _instant(done.get("started_at")), _instant(done.get("ended_at"))
    if ended is None:
        ended = _LAST_KNOWN if started is None else started + timedelta(hours=rng.uniform(0.1, 40))
    if started is None or started > ended:
        started = ended - timedelta(hours=rng.uniform(0.1, 40))
    done["started_at"], done["ended_at"] = _written(started), _written(ended)
    own = [dict(one) for one in done.get("node_events") or ()]
    fault_at = ended - timedelta(seconds=min(rng.uniform(*_FAULT_BEFORE_END), (ended - started).total_seconds()))
    for one in own:
        one["at"] = one.get("at") or _written(fault_at)
        one["node"] = one.get("node") or nodes[0]
    if own:
        done["node_events"] = own
    return done


def add_noise(
    event: Mapping[str, Any], rng: random.Random, noise: Noise | None = None, *, root_rank: int | None = None
) -> dict[str, Any]:
    """Return a copy of an event, completed, with harmless node events among its own and neutral lines in its logs.

    Args:
        event: job-completion/1; it stays as it is.
        rng: the source of all choices.
        noise: how much; None for the defaults.
        root_rank: the rank that fails first, None if unknown. Only with it reactions of another rank are added.
    """
    noise = noise or Noise()
    done = complete(event, rng)
    count = noise.node_events
    if count is None:
        count = round(MOST_EVENTS ** rng.random())
    job = node_noise.job_of(done)
    if count:
        harmless = node_noise.compose(job, rng, count, noise.use, noise.reasons)
        # Stable: the event's own lines of one second keep their order.
        done["node_events"] = sorted([*done.get("node_events", ()), *harmless], key=_order)
    if noise.log_blocks:
        _disturb_logs(done, job, rng, noise, root_rank)
    return done


def _disturb_logs(
    event: dict[str, Any], job: node_noise.Job, rng: random.Random, noise: Noise, root_rank: int | None
) -> None:
    logs = [dict(one) for one in event.get("logs") or ()]
    framework = event.get("framework")
    several = {int(log["rank"]) for log in logs if isinstance(log.get("rank"), int)}
    peers = [rank for rank in sorted(several) if rank != root_rank] if len(several) > 1 else []
    reacts = root_rank is not None and bool(peers) and framework in _FRAMEWORKS_WITH_PEERS and rng.random() < 0.5
    peer = rng.choice(peers) if reacts else None
    for log in logs:
        if log.get("tail"):
            rank = log.get("rank")
            values = {"node": str(log.get("node") or job.nodes[0]), "job": job.job_id, "peer": str(peer or 0)}
            setting = log_noise.Setting(
                use=noise.use,
                blocks=noise.log_blocks,
                framework=framework if isinstance(framework, str) else None,
                at=job.started,
                seconds=job.duration,
                values=values,
                cascades=peer is not None and rank == peer,
            )
            log["tail"] = log_noise.disturb(str(log["tail"]), setting, rng)
    event["logs"] = logs


def _order(one: Mapping[str, Any]) -> datetime:
    at = _instant(one.get("at"))
    return at if at is not None else datetime.max.replace(tzinfo=UTC)


def _instant(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        found = value
    else:
        try:
            found = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _written(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")
