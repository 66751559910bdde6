"""Counts of an incident's members: failed attempts, jobs, lineages and users."""

from sqlalchemy import Connection, func, select

from service.incidents.records import MemberCounts
from service.incidents.tables import incident_jobs
from service.jobs.tables import jobs
from service.requests.tables import lineages


def count(connection: Connection, incident_id: int) -> MemberCounts:
    """The counts of one incident. Attempts whose job retention removed count as one job each."""
    attempts, users, known = connection.execute(
        select(
            func.count(),
            func.count(incident_jobs.c.user_name.distinct()),
            func.count(jobs.c.id),
        )
        .select_from(incident_jobs.outerjoin(jobs, jobs.c.id == incident_jobs.c.failure_id))
        .where(incident_jobs.c.incident_id == incident_id)
    ).one()
    removed = attempts - known
    # Clusters reuse job ids; another user's job with the same id is another job.
    user = func.coalesce(jobs.c.user_name, "")
    root = func.coalesce(lineages.c.root_job_id, jobs.c.job_id)
    same = (lineages.c.cluster == jobs.c.cluster) & (lineages.c.job_id == jobs.c.job_id)
    distinct_jobs, distinct_roots = (
        select(jobs.c.cluster, key.label("key"), user.label("user"))
        .select_from(incident_jobs.join(jobs, jobs.c.id == incident_jobs.c.failure_id).outerjoin(lineages, same))
        .where(incident_jobs.c.incident_id == incident_id)
        .distinct()
        .subquery()
        for key in (jobs.c.job_id, root)
    )
    many_jobs, many_roots = (
        int(connection.execute(select(func.count()).select_from(one)).scalar_one())
        for one in (distinct_jobs, distinct_roots)
    )
    return MemberCounts(int(attempts), many_jobs + removed, many_roots + removed, int(users))
