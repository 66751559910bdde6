"""Conversion between attempts and rows of `jobs`."""

from typing import Any

import orjson
from sqlalchemy import Row

from service.jobs.records import Attempt, NewJob
from service.jobs.tables import jobs
from service.sql.reader import record_of
from service.sql.types import clean, names_of, short, utc

# The inserted columns, in this order; `conflicts` has its default.
COLUMNS = tuple(column.name.encode().decode() for column in jobs.columns if column.name != "conflicts")
POSITION = {name: n for n, name in enumerate(COLUMNS)}


def row_of(job: NewJob, key: str, row_id: int) -> tuple[Any, ...]:
    """The values of `COLUMNS`, in that order."""
    return (
        row_id,
        key,
        job.digest,
        short(job.cluster),
        short(job.job_id),
        job.attempt,
        short(job.pod, 300),
        job.status,
        short(job.name, 300),
        short(job.user),
        short(job.team),
        short(job.queue),
        job.gpus,
        short(job.gpu_type),
        orjson.dumps([clean(node) for node in job.nodes]).decode() if job.nodes else None,
        None if job.submitted_at is None else utc(job.submitted_at),
        None if job.started_at is None else utc(job.started_at),
        utc(job.ended_at),
        utc(job.received_at),
        short(job.resubmit_of),
        job.restart_count,
        job.clock_suspect,
        True,
        job.gpu_hours_lost,
        row_id if job.diagnosed else None,
    )


def attempt_of(row: Row[Any]) -> Attempt:
    """The attempt of a row of `jobs` with `failure`, `side`, `cause`, `headline` and `abstained` of its failure."""
    nodes = names_of(row.nodes)
    return record_of(Attempt, row, user=row.user_name, nodes=nodes, failure_id=row.failure)
