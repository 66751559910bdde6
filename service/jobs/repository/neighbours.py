"""SQL that compares neighbouring rows with one job id: `service.jobs.same_job` for counts that the database makes."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Label, Subquery, and_, case, func, or_

from service.jobs.same_job import RESTARTED_WITHIN, RESUBMITTED_WITHIN
from service.jobs.tables import jobs
from service.sql import portable

IDENTITY = ("name", "pod", "attempt", "submitted_at", "started_at", "ended_at")
THIS = ""


def columns(prefix: str, of_row: Callable[[ColumnElement[Any]], ColumnElement[Any]]) -> list[Label[Any]]:
    """The columns that identify a job, of the row that `of_row` chooses (such as a window function), with a prefix."""
    return [of_row(jobs.c[name]).label(f"{prefix}{name}") for name in IDENTITY]


def same_job(connection: Connection, rows: Subquery, first: str, second: str) -> ColumnElement[bool]:
    """Whether two attempts of one cluster, job id and user are of the same job; `second` ended later.

    Args:
        connection: its dialect decides how times are subtracted.
        rows: with the columns of both attempts.
        first: the prefix of the columns of one attempt; `THIS` is none.
        second: the prefix of those of the other.
    """
    one = {name: rows.c[f"{first}{name}"] for name in IDENTITY}
    other = {name: rows.c[f"{second}{name}"] for name in IDENTITY}
    names = (one["name"].is_(None), other["name"].is_(None), one["name"] == other["name"])
    pods = (one["pod"].is_not(None), other["pod"].is_not(None))
    began = func.coalesce(other["submitted_at"], other["started_at"], other["ended_at"])
    pause = portable.seconds(connection, began, one["ended_at"])
    restarted = func.coalesce(other["attempt"], 0) > func.coalesce(one["attempt"], 0)
    resubmitted = and_(~restarted, other["submitted_at"].is_not(None))
    longest = case((resubmitted, RESUBMITTED_WITHIN.total_seconds()), else_=RESTARTED_WITHIN.total_seconds())
    return and_(or_(*names, *pods), or_(one["submitted_at"] == other["submitted_at"], pause <= longest))
