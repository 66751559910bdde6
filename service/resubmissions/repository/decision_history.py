"""The advice on each version of a verdict, and decisions in bulk with verdict, facts and outcomes of resubmits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, func, select

from service.failures.tables import failures, logs, verdicts
from service.jobs.tables import jobs
from service.resubmissions.records import NewAdvice
from service.resubmissions.repository.rescued import gpu_hours_rescued
from service.resubmissions.tables import advice_history, requests
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.reader import Reader, TimedReader, record_of
from service.sql.types import names_of, short, utc

_COLUMNS = ("failure_id", "version", "at", "policy", "decision", "mode", "step", "facts")
_AT_ONCE = 2_000
# Results of a hook that started a job.
_MADE = ("done", "already_done")


class AdviceReader(TimedReader):
    """Reads advice, with the policy's version and the facts known at that time."""

    def of(self, failure_id: int) -> list[tuple[int, datetime, str, str, str, Any]]:
        """Version, time, policy, decision, mode and facts of each advice on a failure, newest first."""
        wanted = (
            select(advice_history)
            .where(advice_history.c.failure_id == failure_id)
            .order_by(advice_history.c.version.desc())
        )
        return [
            (row.version, row.at, row.policy, row.decision, row.mode, unpack(row.facts))
            for row in self._connection.execute(wanted)
        ]


class AdviceRepository(AdviceReader):
    """Reads and writes advice."""

    def add(self, new: Sequence[NewAdvice]) -> None:
        """Store new advice."""
        now = utc(self._clock.now())
        bulk.append(
            self._connection,
            advice_history,
            _COLUMNS,
            (
                (
                    one.failure_id,
                    one.version,
                    now,
                    short(one.policy, 100),
                    one.decision,
                    one.mode,
                    one.step,
                    pack(one.facts),
                )
                for one in new
            ),
        )


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """One decision, with the attempt that opened the failure.

    `body` is the verdict/1 of that version, None if retention removed it; `event` is the stored part of the event;
    `made`: the resubmit was carried out; `outcome` and `gpu_hours` are those of the resubmitted run; `rescued`: see
    `service.resubmissions.repository.rescued`.
    """

    failure_id: int
    at: datetime
    decision: str
    mode: str
    facts: Mapping[str, Any] | None
    body: Mapping[str, Any] | None
    event: Mapping[str, Any] | None
    cluster: str
    queue: str | None
    team: str | None
    status: str
    gpus: int | None
    nodes: tuple[str, ...]
    started_at: datetime | None
    ended_at: datetime
    made: bool
    outcome: str | None
    gpu_hours: float | None
    rescued: float


class DecisionReader(Reader):
    """Reads past decisions."""

    def span(self, since: datetime | None = None) -> tuple[int, int] | None:
        """The lowest and highest id of a failure with advice since a time; None if there is none."""
        wanted = select(func.min(advice_history.c.failure_id), func.max(advice_history.c.failure_id))
        if since is not None:
            wanted = wanted.where(advice_history.c.at >= utc(since))
        low, high = self._connection.execute(wanted).one()
        return None if low is None else (low, high)

    def read(self, low: int, high: int, since: datetime | None = None) -> Iterator[StoredDecision]:
        """The decisions on failures from `low` to `high` (inclusive), in the order of the failures and so of time."""
        wanted: Select[Any] = (
            select(
                advice_history.c.failure_id,
                advice_history.c.at,
                advice_history.c.decision,
                advice_history.c.mode,
                advice_history.c.facts,
                verdicts.c.body,
                logs.c.event,
                failures.c.cluster,
                failures.c.queue,
                failures.c.team,
                jobs.c.status,
                jobs.c.gpus,
                jobs.c.nodes,
                jobs.c.started_at,
                jobs.c.ended_at,
                jobs.c.gpu_hours_lost,
                requests.c.result,
                requests.c.state,
                requests.c.outcome,
                requests.c.outcome_attempt_id,
            )
            .join(
                verdicts,
                and_(
                    verdicts.c.failure_id == advice_history.c.failure_id, verdicts.c.version == advice_history.c.version
                ),
            )
            .join(failures, failures.c.id == advice_history.c.failure_id)
            .join(jobs, jobs.c.id == advice_history.c.failure_id)
            .outerjoin(
                logs,
                and_(
                    logs.c.failure_id == advice_history.c.failure_id, logs.c.attempt_id == advice_history.c.failure_id
                ),
            )
            .outerjoin(
                requests,
                and_(
                    requests.c.failure_id == advice_history.c.failure_id,
                    requests.c.verdict_version == advice_history.c.version,
                    requests.c.origin == "policy",
                ),
            )
            .order_by(advice_history.c.failure_id, advice_history.c.version)
        )
        if since is not None:
            wanted = wanted.where(advice_history.c.at >= utc(since))
        for begin in range(low, high + 1, _AT_ONCE):
            part = wanted.where(advice_history.c.failure_id.between(begin, min(high, begin + _AT_ONCE - 1)))
            rows = self._connection.execute(part).all()
            spent = self._gpu_hours([row.outcome_attempt_id for row in rows if row.outcome_attempt_id is not None])
            for row in rows:
                yield _stored_decision(row, spent)

    def _gpu_hours(self, attempts: list[int]) -> dict[int, float]:
        """GPU-hours of runs by attempt; runs of unknown size or start are left out."""
        if not attempts:
            return {}
        wanted = select(jobs.c.id, jobs.c.gpus, jobs.c.started_at, jobs.c.ended_at).where(jobs.c.id.in_(attempts))
        return {
            row.id: row.gpus * max(0.0, (row.ended_at - row.started_at).total_seconds()) / 3600
            for row in self._connection.execute(wanted)
            if row.gpus is not None and row.started_at is not None
        }


def _stored_decision(row: Row[Any], spent: Mapping[int, float]) -> StoredDecision:
    return record_of(
        StoredDecision,
        row,
        facts=unpack(row.facts),
        body=None if row.body is None else unpack(row.body),
        event=None if row.event is None else unpack(row.event),
        nodes=names_of(row.nodes),
        made=row.result in _MADE or (row.result is None and row.state == "done"),  # ended before the hook answered
        gpu_hours=spent.get(row.outcome_attempt_id),
        rescued=gpu_hours_rescued(
            row.outcome,
            result=row.result,
            gpus=row.gpus,
            started_at=row.started_at,
            ended_at=row.ended_at,
            gpu_hours_lost=row.gpu_hours_lost,
        ),
    )
