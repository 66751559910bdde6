"""Whose piece of work each job is, and what happened to that before: the lineage as advice reads it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from service.automation.job_ends import DiagnosedAttempt
from service.contracts.event import JobCompletion
from service.db.session import UnitOfWork
from service.recommend.facts import Lineage, Outcome, PastResubmit
from service.requests.records import LineageMember, PastAttempt
from service.requests.repository.leases import LINEAGE_LABEL
from service.requests.repository.lineages import key_of

_KEY = re.compile(r"l[0-9a-f]{20}")
_SECONDS_PER_HOUR = 3600.0
# What counts on a ceiling: acted on, or perhaps acted on. What a hook refused or could not do is no resubmit.
_RESUBMITTED = frozenset({"leased", "done", "unknown"})


@dataclass(slots=True)
class LineageAssignment:
    """The lineages of a batch. `of` by attempt id; `joins`: jobs that are to be remembered as having come of others."""

    of: dict[int, LineageMember] = field(default_factory=dict)
    joins: dict[tuple[str, str], LineageMember] = field(default_factory=dict)


def label_of(event: JobCompletion) -> str | None:
    """The lineage that a hook wrote on the job, if it is one."""
    told = event.labels.get(LINEAGE_LABEL)
    return told if told is not None and _KEY.fullmatch(told) else None


def resolve(work: UnitOfWork, events: Mapping[int, JobCompletion]) -> LineageAssignment:
    """Whose piece of work each of these attempts is (by attempt id), from labels, `resubmit_of` and what is stored."""
    wanted: set[tuple[str, str]] = set()
    for event in events.values():
        wanted.add((event.cluster, event.job_id))
        if event.resubmit_of:
            wanted.add((event.cluster, event.resubmit_of[:200]))
    known = work.lineages.find(wanted) if wanted else {}
    kin = LineageAssignment()
    for attempt_id, event in events.items():
        own = (event.cluster, event.job_id)
        told = label_of(event)
        if own in known:
            joined = known[own]
        elif told is not None:
            joined = LineageMember(told, event.resubmit_of[:200] if event.resubmit_of else event.job_id)
        elif event.resubmit_of:
            before = event.resubmit_of[:200]
            joined = known.get((event.cluster, before)) or LineageMember(key_of(event.cluster, before), before)
        else:
            joined = LineageMember(key_of(*own), event.job_id)
        kin.of[attempt_id] = joined
        if own not in known and joined.lineage != key_of(*own):
            kin.joins[own] = known[own] = joined
    return kin


def adopt(work: UnitOfWork, row: Any, new_job_id: str | None) -> None:
    """Remember the job that a request was answered with as one of its lineage."""
    if new_job_id is None or new_job_id == row.job_id:
        return
    own = (row.cluster, row.job_id)
    before = work.lineages.find([own]).get(own)
    root = row.job_id if before is None else before.root_job_id
    work.lineages.join({(row.cluster, new_job_id): LineageMember(row.lineage, root)})


@dataclass(slots=True)
class LineageHistories:
    """The lineage of each subject by attempt id; `superseded`: a later attempt of the same work has ended already."""

    of: dict[int, Lineage] = field(default_factory=dict)
    superseded: set[int] = field(default_factory=set)


def histories(work: UnitOfWork, subjects: Sequence[DiagnosedAttempt], kin: LineageAssignment) -> LineageHistories:
    """What happened to each subject's piece of work before, its own failure counted in."""
    of_job: dict[tuple[str, str], str] = {}
    moved: set[str] = set()
    for one in subjects:
        joined = kin.of[one.attempt_id]
        of_job[one.event.cluster, one.event.job_id] = joined.lineage
        of_job[one.event.cluster, joined.root_job_id] = joined.lineage
        if joined.root_job_id != one.event.job_id:
            moved.add(joined.lineage)
    past = _past(work, of_job, subjects, moved)
    # A root that was resubmitted as other jobs and now ended again itself: its own name does not tell of them.
    past |= _past(work, of_job, subjects, set(past) - moved) if set(past) - moved else {}
    asked: dict[str, list[Any]] = {}
    if past or moved:
        for row in work.requests.of_lineages(set(past) | moved):
            asked.setdefault(row.lineage, []).append(row)
    found = LineageHistories()
    here = Counter(kin.of[one.attempt_id].lineage for one in subjects)
    for one in sorted(subjects, key=lambda subject: (subject.event.ended_at, subject.attempt_id)):
        key = kin.of[one.attempt_id].lineage
        others = [row for row in past.get(key, []) if one.failure_id not in {row.id, row.failure_id}]
        before = [row for row in others if row.ended_at <= one.event.ended_at]
        if len(before) != len(others):
            found.superseded.add(one.attempt_id)
        found.of[one.attempt_id] = lineage(key, before, one, asked.get(key, []))
        if here[key] > 1:  # another end of the same work is told in this batch
            past[key] = [*others, _as_past(one)]
    return found


def _past(
    work: UnitOfWork, of_job: dict[tuple[str, str], str], subjects: Sequence[DiagnosedAttempt], moved: set[str]
) -> dict[str, list[PastAttempt]]:
    """Stored attempts by lineage; `of_job` learns the jobs of the lineages `moved`."""
    for key, members in (work.lineages.members(moved) if moved else {}).items():
        of_job |= dict.fromkeys(members, key)
    found: dict[str, list[PastAttempt]] = {}
    for attempt in work.lineages.attempts(of_job, besides={one.attempt_id for one in subjects}):
        found.setdefault(of_job[attempt.cluster, attempt.job_id], []).append(attempt)
    return found


def lineage(key: str, before: Sequence[PastAttempt], now: DiagnosedAttempt, asked: Sequence[Any]) -> Lineage:
    """A piece of work with this failure counted in. Pure.

    Args:
        key: the lineage's key.
        before: its earlier attempts, by their end; those of the same pod run are told apart by their row alone.
        now: the failure at hand.
        asked: its stored requests, oldest first.
    """
    if not before and not asked:
        event = now.event
        spent = _hours_of(event.gpus, event.started_at, event.ended_at)
        return Lineage(key=key, first_at=event.ended_at, gpu_hours_spent=spent)
    step = step_of(now)
    steps = [one.step for one in before if one.step is not None]
    furthest = max(steps, default=None)
    progressed = step is not None and furthest is not None and step > furthest
    resubmits = tuple(
        PastResubmit(at=row.leased_at or row.created_at, side=row.side, plan=row.plan, outcome=row.outcome)
        for row in asked
        if row.origin == "policy" and row.state in _RESUBMITTED and row.result != "already_done"
    )
    ended: list[Outcome] = [row.outcome for row in asked if row.outcome is not None]
    last = next((one for one in reversed(before) if one.checkpoint is not None), None)
    return Lineage(
        key=key,
        attempts=len(before) + 1,
        resubmits=resubmits,
        first_at=min((one.ended_at for one in before if one.failure_id is not None), default=now.event.ended_at),
        gpu_hours_spent=round(sum(_gpu_hours(one) for one in [*before, _as_past(now)]), 4),
        same_fingerprint_without_progress=_in_a_row(before, now.verdict.fingerprint, step),
        progressed=progressed,
        last_progress_step=furthest,
        last_checkpoint=None if last is None else last.checkpoint,
        last_outcome=ended[-1] if ended else None,
    )


def step_of(subject: DiagnosedAttempt) -> int | None:
    """How far an attempt came, as its log or its scheduler tells."""
    return furthest_step(subject.event, subject.verdict.progress.step if subject.verdict.progress else None)


def furthest_step(event: JobCompletion, told: int | None) -> int | None:
    """The later of the log's last step and the last checkpoint's."""
    saved = event.checkpoint.step if event.checkpoint is not None else None
    if told is None or saved is None:
        return saved if told is None else told
    return max(told, saved)


def checkpoint_of(subject: DiagnosedAttempt) -> str | None:
    """The last checkpoint that the log or the event tells."""
    progress, known = subject.verdict.progress, subject.event.checkpoint
    return (progress.checkpoint if progress else None) or (known.uri if known else None)


def _in_a_row(before: Sequence[PastAttempt], fingerprint: str, step: int | None) -> int:
    """Failures in a row, this one included, with one fingerprint and none further than the one before it."""
    count, later = 1, step
    for one in reversed([attempt for attempt in before if attempt.failure_id is not None]):
        if one.fingerprint != fingerprint or (later is not None and one.step is not None and later > one.step):
            break
        count += 1
        later = one.step if one.step is not None else later
    return count


def _as_past(one: DiagnosedAttempt) -> PastAttempt:
    event = one.event
    return PastAttempt(
        id=one.attempt_id,
        cluster=event.cluster,
        job_id=event.job_id,
        status=event.status.value,
        started_at=event.started_at,
        ended_at=event.ended_at,
        gpus=event.gpus,
        failure_id=one.failure_id,
        side=one.verdict.side,
        fingerprint=one.verdict.fingerprint,
        step=step_of(one),
        checkpoint=checkpoint_of(one),
    )


def _gpu_hours(one: PastAttempt) -> float:
    return _hours_of(one.gpus, one.started_at, one.ended_at)


def _hours_of(gpus: int | None, began: datetime | None, ended: datetime) -> float:
    if not gpus or began is None or ended <= began:
        return 0.0
    return round(gpus * (ended - began).total_seconds() / _SECONDS_PER_HOUR, 4)
