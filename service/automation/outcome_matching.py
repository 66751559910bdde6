"""How resubmitted jobs ended: each end finds the request it came of, and the request learns its outcome."""

from collections.abc import Mapping, Sequence

from service.automation import incident_probes, notifications
from service.automation.job_ends import EndedAttempt
from service.automation.lineage import LineageAssignment, furthest_step, label_of
from service.automation.success_rates import SuccessRateCache
from service.automation.time_limits import OUTCOMES_COUNT
from service.clock import Clock
from service.contracts.event import Status
from service.db.session import UnitOfWork
from service.recommend import success_odds
from service.recommend.facts import Tally
from service.recommend.policy import Policy
from service.requests.records import AwaitedRequest, Demotion, PastAttempt, Request, RequestOutcome, TallyRow
from service.requests.repository.leases import REQUEST_LABEL

GOOD = frozenset({"succeeded", "got_past"})
BAD = frozenset({"failed_same", "failed_otherwise"})


def ended(
    work: UnitOfWork,
    ends: Sequence[EndedAttempt],
    kin: LineageAssignment,
    *,
    policy: Policy,
    clock: Clock,
    success_rates: SuccessRateCache,
) -> None:
    """Match ends to requests, write down the outcomes, and let what hung on them go on.

    A request that still waits while its job has ended again (somebody else resubmitted it) is withdrawn.
    """
    matched = _matched(work, ends, kin)
    # Incidents before requests: everybody takes them in this order.
    for incident_id in sorted({one.incident_id for one, _ in matched if one.incident_id is not None}):
        work.incidents.hold(incident_id)
    done: list[tuple[AwaitedRequest, Request]] = []
    for awaited, end in matched:
        request = work.outcomes.record(
            awaited,
            outcome(awaited, end),
            attempt_id=end.attempt_id,
            failure_id=end.failure_id,
            new_job_id=end.event.job_id if end.event.job_id != awaited.job_id else None,
        )
        if request is not None:
            done.append((awaited, request))
    _overtaken(work, ends, kin)
    if done:
        settle(work, done, policy=policy, clock=clock)
        success_rates.forget()


def settle(work: UnitOfWork, done: Sequence[tuple[AwaitedRequest, Request]], *, policy: Policy, clock: Clock) -> None:
    """Tell of outcomes that were just written down; probes and trials decide, credibly bad actions are demoted."""
    for awaited, request in done:
        if request.outcome in GOOD:
            work.outbox.add([notifications.of_request("resubmission.succeeded", request, request.outcome)])
        elif request.outcome in BAD:
            work.outbox.add([notifications.of_request("resubmission.failed", request, request.outcome)])
        incident_probes.answered(work, awaited, request, policy=policy, clock=clock)
    demote(work, policy, clock)


def ended_before_the_answer(work: UnitOfWork, request: Request, *, policy: Policy, clock: Clock) -> None:
    """The job may have ended before the hook told which one it is: its end is stored then."""
    job = request.new_job_id or request.job_id
    found = [one for one in work.outcomes.awaited([(request.cluster, job)]) if one.request_id == request.request_id]
    if not found:
        return
    [awaited] = found
    for attempt in work.lineages.attempts([(request.cluster, job)], besides=[awaited.attempt_id]):
        own = job == awaited.job_id
        if own and (attempt.started_at is None or awaited.began is None or attempt.started_at <= awaited.began):
            continue
        told = stored_outcome(awaited, attempt)
        recorded = work.outcomes.record(awaited, told, attempt_id=attempt.id, failure_id=attempt.failure_id)
        if recorded is not None:
            settle(work, [(awaited, recorded)], policy=policy, clock=clock)
        return


def stored_outcome(request: AwaitedRequest, attempt: PastAttempt) -> RequestOutcome:
    """As `outcome`, of an attempt that was stored before. Pure."""
    if attempt.status == Status.SUCCEEDED:
        return "succeeded"
    if attempt.status in {Status.CANCELLED, Status.PREEMPTED}:
        return "unknown"
    if attempt.step is not None and request.step is not None and attempt.step > request.step:
        return "got_past"
    return "failed_same" if attempt.fingerprint == request.fingerprint else "failed_otherwise"


def outcome(request: AwaitedRequest, end: EndedAttempt) -> RequestOutcome:
    """How a resubmitted job ended, next to the failure that it answers. Pure."""
    if end.event.status is Status.SUCCEEDED:
        return "succeeded"
    if end.event.status in {Status.CANCELLED, Status.PREEMPTED}:
        return "unknown"  # a person or a more urgent job ended it: that says nothing of what was wrong
    progress = end.verdict.progress if end.verdict is not None else None
    step = furthest_step(end.event, progress.step if progress is not None else None)
    if step is not None and request.step is not None and step > request.step:
        return "got_past"
    if end.verdict is not None and end.verdict.fingerprint == request.fingerprint:
        return "failed_same"
    return "failed_otherwise"


def _matched(
    work: UnitOfWork, ends: Sequence[EndedAttempt], kin: LineageAssignment
) -> list[tuple[AwaitedRequest, EndedAttempt]]:
    if not work.outcomes.any_awaited():
        return []
    jobs: set[tuple[str, str]] = set()
    told: set[str] = set()
    lineages: set[str] = set()
    for end in ends:
        event = end.event
        jobs.add((event.cluster, event.job_id))
        if event.resubmit_of:
            jobs.add((event.cluster, event.resubmit_of[:200]))
        if REQUEST_LABEL in event.labels:
            told.add(event.labels[REQUEST_LABEL][:40])
        if label_of(event) is not None:
            lineages.add(kin.of[end.attempt_id].lineage)
    waiting = work.outcomes.awaited(jobs, request_ids=told, lineages=lineages)
    taken: dict[int, tuple[AwaitedRequest, EndedAttempt]] = {}
    used: set[int] = set()
    for end in sorted(ends, key=lambda one: (one.event.ended_at, one.attempt_id)):
        for request in sorted(waiting, key=lambda one: -one.id):  # the latest request of a job first
            if request.id not in taken and end.attempt_id not in used and answers(request, end, kin):
                taken[request.id] = (request, end)
                used.add(end.attempt_id)
    return [taken[number] for number in sorted(taken)]


def answers(request: AwaitedRequest, end: EndedAttempt, kin: LineageAssignment) -> bool:
    """Whether this end is of the job that the request started."""
    event = end.event
    if event.cluster != request.cluster or end.attempt_id == request.attempt_id:
        return False
    if request.new_job_id is not None and event.job_id == request.new_job_id != request.job_id:
        return True
    if REQUEST_LABEL in event.labels:
        return event.labels[REQUEST_LABEL] == request.request_id
    return _later(request, end) and _named(request, end, kin)


def _named(request: AwaitedRequest, end: EndedAttempt, kin: LineageAssignment) -> bool:
    event = end.event
    if event.job_id == request.job_id:
        return request.kind == "requeue" or request.new_job_id == event.job_id
    if request.new_job_id is not None:
        return False  # it is known as what it was started, and that is another job
    if event.resubmit_of == request.job_id:
        return True
    return label_of(event) is not None and kin.of[end.attempt_id].lineage == request.lineage


def _later(request: AwaitedRequest, end: EndedAttempt) -> bool:
    """Whether an attempt began after the one that failed; where no start is told, whether it ended after the lease."""
    event = end.event
    if event.started_at is not None and request.began is not None:
        return event.started_at > request.began
    return event.ended_at >= request.leased_at


def _overtaken(work: UnitOfWork, ends: Sequence[EndedAttempt], kin: LineageAssignment) -> None:
    """Withdraw what still waits of work that has ended again meanwhile."""
    if not work.requests.any_open():
        return
    by_lineage: dict[str, list[EndedAttempt]] = {}
    for end in ends:
        by_lineage.setdefault(kin.of[end.attempt_id].lineage, []).append(end)
    gone: list[str] = []
    for lineage, row in work.requests.open_rows(by_lineage).items():
        later = [
            end
            for end in by_lineage[lineage]
            if end.attempt_id != row.attempt_id
            and end.failure_id != row.failure_id
            and end.event.started_at is not None
            and (row.started_at is None or end.event.started_at > row.started_at)
        ]
        if later and row.state != "leased":
            gone.append(row.public_id)
    withdrawn = work.requests.end(gone, "withdrawn", detail="the job ran again meanwhile", only=("held", "waiting"))
    work.outbox.add(notifications.of_requests("resubmission.suppressed", withdrawn, "the job ran again meanwhile"))


def demote(work: UnitOfWork, policy: Policy, clock: Clock) -> None:
    """Demote actions whose success rate is credibly below the floor; promote those that have recovered."""
    now = clock.now()
    rows = work.outcomes.tallies(now - OUTCOMES_COUNT)
    standing = {(one.cluster, one.cause, one.plan, one.policy): one for one in work.outcomes.demotions()}
    bad: Mapping[tuple[str, str, str, str], TallyRow] = {
        (row.cluster, row.cause, row.plan, row.policy): row for row in rows if under_floor(row, policy)
    }
    for key, row in bad.items():
        if key in standing:
            continue
        floor = policy.effective(cluster=row.cluster).demotion.floor
        one = Demotion(row.cluster, row.cause, row.plan, row.policy, now, row.helped, row.failed, floor)
        if work.outcomes.demote(one):
            told = {"helped": row.helped, "failed": row.failed, "floor": floor}
            work.outbox.add([notifications.of_demotion(row.cluster, row.cause, row.plan, row.policy, told)])
    for key, one in standing.items():
        if key not in bad:
            work.outcomes.promote(one)


def under_floor(row: TallyRow, policy: Policy) -> bool:
    """Whether an action's success rate is credibly below what the policy asks for."""
    settings = policy.effective(cluster=row.cluster).demotion
    tally = Tally(row.helped, row.failed)
    ends = tally.helped + tally.failed
    return (
        ends >= settings.at_least
        and success_odds.below(tally.helped, tally.failed, settings.floor) >= settings.credible
    )
