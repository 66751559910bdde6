"""Conversion of an event to a new row of `jobs`."""

import math
from datetime import datetime
from hashlib import blake2b

from service.contracts.event import JobCompletion, Status
from service.jobs.records import NewJob
from service.nodes.records import PLACE_NAME_MOST, NodePlace

_NOT_CONTENT = {"intake_source"}  # the same event may come from a topic and by HTTP
_SECONDS_PER_HOUR = 3600.0


def content_digest(event: JobCompletion) -> bytes:
    """16 bytes that distinguish two contents of one key: BLAKE2b over the event's JSON as the service parses it."""
    content = event.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=True, exclude=_NOT_CONTENT)
    return blake2b(content.encode("utf-8", "replace"), digest_size=16).digest()


def new_job(
    event: JobCompletion, *, now: datetime, diagnosed: bool, digest: bytes | None = None, key: str | None = None
) -> NewJob:
    """The narrow row of a redacted event; `digest` and `key` are computed if not given."""
    return NewJob(
        event_id=event.key() if key is None else key,
        digest=content_digest(event) if digest is None else digest,
        cluster=event.cluster,
        job_id=event.job_id,
        status=event.status.value,
        ended_at=event.ended_at,
        received_at=now,
        attempt=event.attempt,
        pod=event.pod,
        name=event.name,
        user=event.user,
        team=event.team,
        queue=event.queue,
        gpus=event.gpus,
        gpu_type=event.gpu_type,
        nodes=event.nodes,
        submitted_at=event.submitted_at,
        started_at=event.started_at,
        resubmit_of=event.resubmit_of,
        restart_count=event.restart_count,
        clock_suspect=event.clock_suspect(now),
        gpu_hours_lost=gpu_hours_lost(event),
        diagnosed=diagnosed,
        places=places(event),
    )


def places(event: JobCompletion) -> dict[str, NodePlace]:
    """Rack, switch, zone and block of the job's nodes, as far as its topology names them by a text or a number."""
    found = {}
    for node in event.nodes:
        named = event.topology.get(node)
        if named:
            place = NodePlace(*(_place_name(named.get(kind)) for kind in ("rack", "switch", "zone", "block")))
            if place != NodePlace():
                found[node] = place
    return found


def _place_name(value: object) -> str | None:
    return str(value)[:PLACE_NAME_MOST] if isinstance(value, str | int) and str(value).strip() else None


def gpu_hours_lost(event: JobCompletion) -> float:
    """GPUs × hours from the later of start and last checkpoint to the end; 0 if unknown.

    A checkpoint outside the attempt's run time is ignored.
    """
    if event.status is Status.SUCCEEDED or not event.gpus or event.started_at is None:
        return 0.0
    since = event.started_at
    saved = None if event.checkpoint is None else event.checkpoint.at
    if saved is not None and since < saved <= event.ended_at:
        since = saved
    hours = event.gpus * (event.ended_at - since).total_seconds() / _SECONDS_PER_HOUR
    return round(hours, 4) if math.isfinite(hours) and hours > 0 else 0.0
