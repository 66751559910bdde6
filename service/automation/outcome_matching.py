"""Matches the ends of resubmitted jobs to their requests, and stores the outcome of each request."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from service.automation import incident_probes, notifications
from service.automation.claims import original_of
from service.automation.job_ends import EndedAttempt
from service.automation.lineage import LineageAssignment, furthest_step, label_of
from service.automation.success_rates import SuccessRateCache
from service.automation.time_limits import OUTCOME_AGE
from service.clock import Clock
from service.contracts.advice import FAILED, HELPED, REQUEST_LABEL, Outcome
from service.contracts.event import Status
from service.db.session import UnitOfWork
from service.recommend.policy import Policy
from service.recommend.rules import cost_and_success
from service.resubmissions.records import AwaitedRequest, Demotion, PastAttempt, Request, TallyRow

_RAN_AGAIN = "the job ran again meanwhile"


def match_ends(
    work: UnitOfWork,
    ends: Sequence[EndedAttempt],
    lineages: LineageAssignment,
    *,
    policy: Policy,
    clock: Clock,
    success_rates: SuccessRateCache,
) -> None:
    """Match ends to requests, store the outcomes, and act on them.

    A waiting request whose job has ended again (another system resubmitted it) is withdrawn.
    """
    matched = _matched(work, ends, lineages)
    # Incidents are locked before requests, in every transaction.
    for incident_id in sorted({request.incident_id for request, _ in matched if request.incident_id is not None}):
        work.incidents.get_locked(incident_id)
    recorded: list[tuple[AwaitedRequest, Request]] = []
    for awaited, end in matched:
        request = work.outcomes.record(
            awaited,
            outcome_of_end(awaited, end),
            attempt_id=end.attempt_id,
            failure_id=end.failure_id,
            new_job_id=end.event.job_id if end.event.job_id != awaited.job_id else None,
        )
        if request is not None:
            recorded.append((awaited, request))
    _withdraw_superseded(work, ends, lineages)
    if recorded:
        apply_outcomes(work, recorded, policy=policy, clock=clock)
        success_rates.clear()


def apply_outcomes(
    work: UnitOfWork, recorded: Sequence[tuple[AwaitedRequest, Request]], *, policy: Policy, clock: Clock
) -> None:
    """Announce outcomes that were just stored, decide incidents and storms, and demote unsuccessful actions."""
    for awaited, request in recorded:
        if request.outcome in HELPED:
            work.outbox.add([notifications.of_request("resubmission.succeeded", request, request.outcome)])
        elif request.outcome in FAILED:
            work.outbox.add([notifications.of_request("resubmission.failed", request, request.outcome)])
        incident_probes.apply_outcome(work, awaited, request, policy=policy, clock=clock)
    update_demotions(work, policy, clock)


def match_stored_end(work: UnitOfWork, request: Request, *, policy: Policy, clock: Clock) -> None:
    """Match an end that arrived before the hook reported which job it started."""
    job = request.new_job_id or request.job_id
    found = [one for one in work.outcomes.awaited([(request.cluster, job)]) if one.request_id == request.request_id]
    if not found:
        return
    [awaited] = found
    for attempt in work.lineages.attempts([(request.cluster, job)], except_ids=[awaited.attempt_id]):
        if job == awaited.job_id and not _has_run_again(awaited, attempt.started_at, attempt.ended_at):
            continue
        outcome = outcome_of_attempt(awaited, attempt)
        recorded = work.outcomes.record(awaited, outcome, attempt_id=attempt.id, failure_id=attempt.failure_id)
        if recorded is not None:
            apply_outcomes(work, [(awaited, recorded)], policy=policy, clock=clock)
        return


def outcome_of_attempt(request: AwaitedRequest, attempt: PastAttempt) -> Outcome:
    """The outcome of a request from a stored attempt of its job. Pure."""
    return _outcome(request, Status(attempt.status), attempt.step, attempt.fingerprint)


def outcome_of_end(request: AwaitedRequest, end: EndedAttempt) -> Outcome:
    """The outcome of a request from the end of its job. Pure."""
    progress = end.verdict.progress if end.verdict is not None else None
    step = furthest_step(end.event, progress.step if progress is not None else None)
    fingerprint = end.verdict.fingerprint if end.verdict is not None else None
    return _outcome(request, end.event.status, step, fingerprint)


def _outcome(request: AwaitedRequest, status: Status, step: int | None, fingerprint: str | None) -> Outcome:
    if status is Status.SUCCEEDED:
        return "succeeded"
    if status in {Status.CANCELLED, Status.PREEMPTED}:
        return "unknown"  # a person or a job of higher priority ended it, so the fault may be there or not
    if step is not None and request.step is not None and step > request.step:
        return "got_past"
    return "failed_same" if fingerprint == request.fingerprint else "failed_otherwise"


def _matched(
    work: UnitOfWork, ends: Sequence[EndedAttempt], lineages: LineageAssignment
) -> list[tuple[AwaitedRequest, EndedAttempt]]:
    if not work.outcomes.any_awaited():
        return []
    jobs: set[tuple[str, str]] = set()
    request_ids: set[str] = set()
    keys: set[str] = set()
    for end in ends:
        event = end.event
        jobs.add((event.cluster, event.job_id))
        if (original := original_of(event)) is not None:
            jobs.add((event.cluster, original))
        if REQUEST_LABEL in event.labels:
            request_ids.add(event.labels[REQUEST_LABEL][:40])
        if label_of(event) is not None:
            keys.add(lineages.by_attempt[end.attempt_id].lineage)
    awaited = work.outcomes.awaited(jobs, request_ids=request_ids, lineages=keys)
    matched: dict[int, tuple[AwaitedRequest, EndedAttempt]] = {}
    used: set[int] = set()
    for end in sorted(ends, key=lambda one: (one.event.ended_at, one.attempt_id)):
        for request in sorted(awaited, key=lambda one: -one.id):  # the latest request of a job first
            if request.id not in matched and end.attempt_id not in used and belongs_to(request, end, lineages):
                matched[request.id] = (request, end)
                used.add(end.attempt_id)
    return [matched[number] for number in sorted(matched)]


def belongs_to(request: AwaitedRequest, end: EndedAttempt, lineages: LineageAssignment) -> bool:
    """Whether this end is of the job that the request started."""
    event = end.event
    if event.cluster != request.cluster or end.attempt_id == request.attempt_id:
        return False
    if request.new_job_id is not None and event.job_id == request.new_job_id != request.job_id:
        return True
    if REQUEST_LABEL in event.labels:
        return event.labels[REQUEST_LABEL] == request.request_id
    return _is_later(request, end) and _is_same_job(request, end, lineages)


def _is_same_job(request: AwaitedRequest, end: EndedAttempt, lineages: LineageAssignment) -> bool:
    event = end.event
    if event.job_id == request.job_id:
        return request.kind == "requeue" or request.new_job_id == event.job_id
    if request.new_job_id is not None:
        return False  # the started job is known, and it is another one
    if event.resubmit_of == request.job_id:
        return True
    return label_of(event) is not None and lineages.by_attempt[end.attempt_id].lineage == request.lineage


def _is_later(request: AwaitedRequest, end: EndedAttempt) -> bool:
    """Whether an attempt ran after the failed one; if a start is missing, whether it ended after the lease."""
    event = end.event
    if event.started_at is None or request.began is None:
        return event.ended_at >= request.leased_at
    return _has_run_again(request, event.started_at, event.ended_at)


def _has_run_again(request: AwaitedRequest, started_at: datetime | None, ended_at: datetime) -> bool:
    """Whether a run with these times started after the failed one.

    Slurm's times are whole seconds, so a job that fails at once and is requeued at once starts twice in one second;
    then the run that ended in the second of the lease or after it is the later one.
    """
    if started_at is None or request.began is None or started_at < request.began:
        return False
    return started_at > request.began or ended_at >= request.leased_at.replace(microsecond=0)


def _withdraw_superseded(work: UnitOfWork, ends: Sequence[EndedAttempt], lineages: LineageAssignment) -> None:
    """Withdraw waiting requests of lineages whose job ran again meanwhile."""
    if not work.requests.any_open():
        return
    by_lineage: dict[str, list[EndedAttempt]] = {}
    for end in ends:
        by_lineage.setdefault(lineages.by_attempt[end.attempt_id].lineage, []).append(end)
    superseded: list[str] = []
    for lineage, request in work.requests.open_by_lineage(by_lineage).items():
        later = [
            end
            for end in by_lineage[lineage]
            if end.attempt_id != request.attempt_id
            and end.failure_id != request.failure_id
            and end.event.started_at is not None
            and (request.started_at is None or end.event.started_at > request.started_at)
        ]
        if later and request.state != "leased":
            superseded.append(request.request_id)
    withdrawn = work.requests.end(superseded, "withdrawn", detail=_RAN_AGAIN, only=("held", "waiting"))
    work.outbox.add(notifications.of_requests("resubmission.suppressed", withdrawn, _RAN_AGAIN))


def update_demotions(work: UnitOfWork, policy: Policy, clock: Clock) -> None:
    """Demote actions whose success rate is credibly below the minimum; promote those that have recovered."""
    now = clock.now()
    rows = work.outcomes.tallies(now - OUTCOME_AGE)
    demoted = {(one.cluster, one.cause, one.plan, one.policy): one for one in work.outcomes.demotions()}
    below: Mapping[tuple[str, str, str, str], TallyRow] = {
        (row.cluster, row.cause, row.plan, row.policy): row for row in rows if below_minimum(row, policy)
    }
    for key, row in below.items():
        if key in demoted:
            continue
        floor = policy.effective(cluster=row.cluster).demotion.floor
        demotion = Demotion(row.cluster, row.cause, row.plan, row.policy, now, row.helped, row.failed, floor)
        if work.outcomes.demote(demotion):
            tally = {"helped": row.helped, "failed": row.failed, "floor": floor}
            work.outbox.add([notifications.of_demotion(row.cluster, row.cause, row.plan, row.policy, tally)])
    for key, demotion in demoted.items():
        if key not in below:
            work.outcomes.promote(demotion)


def below_minimum(row: TallyRow, policy: Policy) -> bool:
    """Whether an action's success rate is credibly below the minimum of the policy."""
    settings = policy.effective(cluster=row.cluster).demotion
    return (
        row.helped + row.failed >= settings.at_least
        and cost_and_success.below(row.helped, row.failed, settings.floor) >= settings.credible
    )
