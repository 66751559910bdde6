"""Lineages of jobs: which lineage each job belongs to, and the history of a lineage as the advice reads it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.automation.claims import CheckedClaims, original_of
from service.automation.job_ends import DiagnosedAttempt
from service.contracts.advice import LINEAGE_LABEL
from service.contracts.event import JobCompletion
from service.db.session import UnitOfWork
from service.jobs.same_job import runs_of_job
from service.recommend.facts import Lineage, PastResubmit
from service.resubmissions.records import LineageMember, PastAttempt, StoredRequest
from service.resubmissions.repository.lineages import key_of

_KEY = re.compile(r"l[0-9a-f]{20}")
# States that count towards the limits: carried out, or possibly so. Refused and failed requests do not count.
_RESUBMITTED = frozenset({"leased", "done", "unknown"})


@dataclass(slots=True)
class LineageAssignment:
    """The lineages of a batch by attempt id; `new_members`: jobs to be stored as members of another job's lineage."""

    by_attempt: dict[int, LineageMember] = field(default_factory=dict)
    new_members: dict[tuple[str, str], LineageMember] = field(default_factory=dict)


@dataclass(slots=True)
class LineageHistories:
    """The history of each attempt's lineage by attempt id; `superseded`: a later attempt of it has ended already."""

    by_attempt: dict[int, Lineage] = field(default_factory=dict)
    superseded: set[int] = field(default_factory=set)


def label_of(event: JobCompletion) -> str | None:
    """The lineage key in the job's label, if it is valid."""
    label = event.labels.get(LINEAGE_LABEL)
    return label if label is not None and _KEY.fullmatch(label) else None


def assign(work: UnitOfWork, claims: CheckedClaims) -> LineageAssignment:
    """The lineage of each attempt (by attempt id), from labels, `resubmit_of` and stored members."""
    jobs: set[tuple[str, str]] = set()
    for event in claims.events.values():
        jobs.add((event.cluster, event.job_id))
        if (original := original_of(event)) is not None:
            jobs.add((event.cluster, original))
    known = work.lineages.find(jobs) if jobs else {}
    assignment = LineageAssignment()
    for attempt_id, event in claims.events.items():
        job = (event.cluster, event.job_id)
        member = _member(event, known, confirmed=attempt_id not in claims.unconfirmed)
        assignment.by_attempt[attempt_id] = member
        if job not in known and member.lineage != key_of(*job):
            assignment.new_members[job] = known[job] = member
    return assignment


def _member(event: JobCompletion, known: Mapping[tuple[str, str], LineageMember], *, confirmed: bool) -> LineageMember:
    job = (event.cluster, event.job_id)
    if job in known:
        return known[job]
    label = label_of(event)
    original = original_of(event)
    if label is not None:
        return LineageMember(label, original or event.job_id)
    if original is not None and not confirmed:
        # The job may still run, and be another person's: its resubmissions are a lineage of their owner alone.
        return LineageMember(key_of(event.cluster, f"{original}\0{event.user or ''}"), original)
    if original is not None:
        return known.get((event.cluster, original)) or LineageMember(key_of(event.cluster, original), original)
    return LineageMember(key_of(*job), event.job_id)


def add_resubmitted_job(work: UnitOfWork, request: StoredRequest, new_job_id: str | None) -> None:
    """Store the job that a hook started for a request as a member of the request's lineage."""
    if new_job_id is None or new_job_id == request.job_id:
        return
    job = (request.cluster, request.job_id)
    member = work.lineages.find([job]).get(job)
    root = request.job_id if member is None else member.root_job_id
    work.lineages.join({(request.cluster, new_job_id): LineageMember(request.lineage, root)})


def histories(
    work: UnitOfWork, attempts: Sequence[DiagnosedAttempt], assignment: LineageAssignment
) -> LineageHistories:
    """The history of each attempt's lineage, with its own failure counted in."""
    lineage_of_job: dict[tuple[str, str], str] = {}
    resubmitted: set[str] = set()
    for one in attempts:
        member = assignment.by_attempt[one.attempt_id]
        lineage_of_job[one.event.cluster, one.event.job_id] = member.lineage
        lineage_of_job[one.event.cluster, member.root_job_id] = member.lineage
        if member.root_job_id != one.event.job_id:
            resubmitted.add(member.lineage)
    past = _past_attempts(work, lineage_of_job, attempts, resubmitted)
    # A root job that ended again after it was resubmitted under other job ids: its own id does not show those.
    roots = set(past) - resubmitted
    if roots:
        past |= _past_attempts(work, lineage_of_job, attempts, roots)
    requests: dict[str, list[StoredRequest]] = {}
    if past or resubmitted:
        for request in work.requests.of_lineages(set(past) | resubmitted):
            requests.setdefault(request.lineage, []).append(request)
    found = LineageHistories()
    in_batch = Counter(assignment.by_attempt[one.attempt_id].lineage for one in attempts)
    for one in sorted(attempts, key=lambda attempt: (attempt.event.ended_at, attempt.attempt_id)):
        key = assignment.by_attempt[one.attempt_id].lineage
        others = [
            other
            for other in _of_same_job(past.get(key, []), one)
            if one.failure_id not in {other.id, other.failure_id}
        ]
        before = [other for other in others if other.ended_at <= one.event.ended_at]
        if len(before) != len(others):
            found.superseded.add(one.attempt_id)
        found.by_attempt[one.attempt_id] = history(key, before, one, requests.get(key, []))
        if in_batch[key] > 1:  # this batch contains another end of the same lineage
            past[key] = [*others, _as_past(one)]
    return found


def _of_same_job(past: Sequence[PastAttempt], current: DiagnosedAttempt) -> list[PastAttempt]:
    """The attempts without those of another job to which the cluster gave the same id."""
    if not past:  # as for most jobs
        return []
    own = _as_past(current)
    here = [other for other in past if other.job_id == own.job_id and other.id != own.id]
    of_same_job = {run.id for run in runs_of_job([*here, own], own)}
    return [other for other in past if other.job_id != own.job_id or other.id in of_same_job]


def _past_attempts(
    work: UnitOfWork,
    lineage_of_job: dict[tuple[str, str], str],
    attempts: Sequence[DiagnosedAttempt],
    lineages: set[str],
) -> dict[str, list[PastAttempt]]:
    """Stored attempts by lineage; the members of `lineages` are added to `lineage_of_job`."""
    for key, members in (work.lineages.members(lineages) if lineages else {}).items():
        lineage_of_job |= dict.fromkeys(members, key)
    found: dict[str, list[PastAttempt]] = {}
    for attempt in work.lineages.attempts(lineage_of_job, except_ids={one.attempt_id for one in attempts}):
        found.setdefault(lineage_of_job[attempt.cluster, attempt.job_id], []).append(attempt)
    return found


def history(
    key: str, before: Sequence[PastAttempt], current: DiagnosedAttempt, requests: Sequence[StoredRequest]
) -> Lineage:
    """The history of a lineage, with the current failure counted in. Pure.

    Args:
        key: the lineage's key.
        before: its earlier attempts, ordered by their end.
        current: the current failure.
        requests: its stored requests, oldest first.
    """
    if not before and not requests:
        return Lineage(key=key, first_at=current.event.ended_at)
    step = step_of(current)
    steps = [one.step for one in before if one.step is not None]
    furthest = max(steps, default=None)
    progressed = step is not None and furthest is not None and step > furthest
    resubmits = tuple(
        PastResubmit(at=one.leased_at or one.created_at, side=one.side, plan=one.plan, outcome=one.outcome)
        for one in requests
        if one.origin == "policy" and one.state in _RESUBMITTED and one.result != "already_done"
    )
    return Lineage(
        key=key,
        attempts=len(before) + 1,
        resubmits=resubmits,
        first_at=min((one.ended_at for one in before if one.failure_id is not None), default=current.event.ended_at),
        same_fingerprint_without_progress=_consecutive_failures(before, current.verdict.fingerprint, step),
        progressed=progressed,
    )


def step_of(attempt: DiagnosedAttempt) -> int | None:
    """The last training step of an attempt, from its log or its event."""
    return furthest_step(attempt.event, attempt.verdict.progress.step if attempt.verdict.progress else None)


def furthest_step(event: JobCompletion, logged: int | None) -> int | None:
    """The later of the step in the log and the step of the last checkpoint."""
    saved = event.checkpoint.step if event.checkpoint is not None else None
    if logged is None or saved is None:
        return saved if logged is None else logged
    return max(logged, saved)


def checkpoint_of(attempt: DiagnosedAttempt) -> str | None:
    """The last checkpoint, from the log or the event."""
    progress, reported = attempt.verdict.progress, attempt.event.checkpoint
    return (progress.checkpoint if progress else None) or (reported.uri if reported else None)


def _consecutive_failures(before: Sequence[PastAttempt], fingerprint: str, step: int | None) -> int:
    """Consecutive failures, this one included, with one fingerprint and no progress from one to the next."""
    count, later = 1, step
    for one in reversed([attempt for attempt in before if attempt.failure_id is not None]):
        if one.fingerprint != fingerprint or (later is not None and one.step is not None and later > one.step):
            break
        count += 1
        later = one.step if one.step is not None else later
    return count


def _as_past(attempt: DiagnosedAttempt) -> PastAttempt:
    event = attempt.event
    return PastAttempt(
        id=attempt.attempt_id,
        cluster=event.cluster,
        job_id=event.job_id,
        status=event.status.value,
        started_at=event.started_at,
        ended_at=event.ended_at,
        failure_id=attempt.failure_id,
        side=attempt.verdict.side,
        fingerprint=attempt.verdict.fingerprint,
        step=step_of(attempt),
        user=event.user,
        name=event.name,
        pod=event.pod,
        attempt=event.attempt,
        submitted_at=event.submitted_at,
    )
