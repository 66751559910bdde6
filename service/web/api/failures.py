"""GET /failures, /facets, /failures/{id}, /jobs/{cluster}/{job_id} and /stats."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel

from service.contracts.verdict import VerdictBody
from service.failures.records import FailureDetail, FailureRow, FailureSort
from service.failures.repository.facets import FacetCounts
from service.jobs.records import Attempt
from service.statistics.records import Scope, Stats
from service.web import views
from service.web.api.parameters import ClusterInPath, Cursor, Id, Limit, Since, Text, Until, failure_query
from service.web.auth import OWN, READ
from service.web.error_responses import answers
from service.web.services import InjectedServices
from service.web.views import FailureQuery, Job, Pipeline

router = APIRouter(tags=["failures"])


class FailuresPage(BaseModel):
    """One page of failures."""

    items: list[FailureRow]
    next_cursor: str | None


class Version(BaseModel):
    """One version of a verdict; `body` is null if retention removed it."""

    version: int
    at: datetime
    source: Literal["machine", "person"]
    model: str
    rules: str
    policy: str
    body: VerdictBody | None


class Stream(BaseModel):
    """One log stream; `text` only with ?logs=true."""

    rank: int | None
    node: str | None
    stream: str
    first_line: int | None
    characters: int
    missing: str | None
    text: str | None = None


class Logs(BaseModel):
    """Stored data of one diagnosed attempt: its event (job-completion/1 without log tails) and its log streams."""

    attempt_id: int
    event: Mapping[str, Any]
    streams: list[Stream]


class FailureAnswer(BaseModel):
    """One failure: its row, the current verdict, all versions (newest first), logs and attempts."""

    failure: FailureRow
    verdict: VerdictBody | None
    versions: list[Version]
    logs: list[Logs]
    attempts: list[Attempt]


class StatsAnswer(BaseModel):
    """Counts and rates, and health of the pipeline."""

    stats: Stats
    pipeline: Pipeline


@router.get("/failures", dependencies=[OWN], responses=answers(401, 403, 422, 503))
def get_failures(
    services: InjectedServices,
    filters: Annotated[FailureQuery, Depends(failure_query)],
    limit: Limit = 50,
    cursor: Cursor = None,
    sort: FailureSort = "-ended_at",
) -> FailuresPage:
    """Failures, newest first by default; pages by cursor."""
    page = views.failures(services, filters, limit=limit, cursor=cursor, sort=sort)
    return FailuresPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/facets", dependencies=[OWN], responses=answers(401, 403, 422, 503))
def get_facets(services: InjectedServices, filters: Annotated[FailureQuery, Depends(failure_query)]) -> FacetCounts:
    """The most common values of each filter among the newest 2,000 matches; `whole`: there are no more."""
    return views.facets(services, filters)


@router.get("/failures/{failure_id}", dependencies=[OWN], responses=answers(401, 403, 404, 422, 503))
def get_failure(
    services: InjectedServices,
    failure_id: Id,
    logs: Annotated[bool, Query(description="include the text of the logs")] = False,  # noqa: FBT002 - a query parameter
) -> FailureAnswer:
    """One failure with its verdict, every version of it, its event, logs and attempts."""
    return answer(views.failure(services, failure_id), texts=logs)


@router.get("/jobs/{cluster}/{job_id:path}", dependencies=[OWN], responses=answers(401, 403, 404, 422, 503))
def get_job(
    services: InjectedServices,
    cluster: ClusterInPath,
    job_id: Annotated[str, Path(max_length=200, description="may contain slashes")],
) -> Job:
    """A job with every attempt, oldest first."""
    return views.job(services, cluster, job_id)


@router.get("/stats", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_stats(
    services: InjectedServices,
    since: Since = None,
    until: Until = None,
    cluster: Text = None,
    queue: Text = None,
    team: Text = None,
) -> StatsAnswer:
    """Counts and rates of jobs that ended in [since, until), by default the 24 hours before `until`; health.

    `hours` are those of the period, of a longer one its last 24.
    """
    with services.snapshot() as snapshot:
        stats = views.stats(snapshot, since, until, Scope(cluster or None, team or None, queue or None))
        return StatsAnswer(stats=stats, pipeline=views.pipeline(snapshot))


def answer(detail: FailureDetail, *, texts: bool) -> FailureAnswer:
    """The API response of a stored failure."""
    return FailureAnswer.model_validate(
        {
            "failure": detail.row,
            "verdict": detail.verdict,
            "versions": [
                {
                    "version": version.version,
                    "at": version.at,
                    "source": version.source,
                    "model": version.model,
                    "rules": version.rules,
                    "policy": version.policy,
                    "body": version.body,
                }
                for version in detail.versions
            ],
            "logs": [
                {
                    "attempt_id": logs.attempt_id,
                    "event": logs.event,
                    "streams": [
                        {
                            "rank": stream.rank,
                            "node": stream.node,
                            "stream": stream.stream,
                            "first_line": stream.first_line,
                            "characters": len(stream.text),
                            "missing": stream.missing,
                            "text": stream.text if texts else None,
                        }
                        for stream in logs.streams
                    ],
                }
                for logs in detail.logs
            ],
            "attempts": detail.attempts,
        }
    )
