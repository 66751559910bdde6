"""Failures of a job by its id, or by its name among the newest failures."""

from sqlalchemy import Connection, func, select

from service.failures.tables import failures
from service.jobs.tables import jobs
from service.sql.types import clean

MOST = 2_000  # failures of one job
NEWEST = 10_000  # failures whose names are compared: no index serves names
_CLUSTERS = 200


def find(connection: Connection, text: str, *, cluster: str | None) -> list[int]:
    """The ids of the failures of a job, unordered, at most 2,000; by name only where no job has this id."""
    wanted = clean(text)
    names = _clusters(connection) if cluster is None else [clean(cluster)]
    by_id = (
        select(failures.c.id)
        .join(jobs, jobs.c.id == failures.c.id)
        .where(jobs.c.cluster.in_(names), jobs.c.job_id == wanted)
        .limit(MOST)
    )
    found = list(connection.execute(by_id).scalars())
    if found:
        return found
    newest = (
        select(failures.c.id)
        .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        .limit(NEWEST)
        .subquery("newest")
    )
    by_name = select(newest.c.id).join(jobs, jobs.c.id == newest.c.id).where(jobs.c.name == wanted).limit(MOST)
    return list(connection.execute(by_name).scalars())


def _clusters(connection: Connection) -> list[str]:
    """The names of the clusters: one step in the index of cluster and job id for each."""
    found: list[str] = []
    name = connection.execute(select(func.min(jobs.c.cluster))).scalar()
    while name is not None and len(found) < _CLUSTERS:
        found.append(name)
        name = connection.execute(select(func.min(jobs.c.cluster)).where(jobs.c.cluster > name)).scalar()
    return found
