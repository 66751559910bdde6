"""Answers of hooks to their leases: a request was carried out, refused, or failed."""

from datetime import timedelta

from service.automation import incident_probes, lineage, notifications, outcome_matching
from service.automation.time_limits import LONGEST_RETRY_S, MAX_TRIES
from service.backoff import pause_after
from service.clock import Clock
from service.contracts.advice import AckResult
from service.db.session import Store, UnitOfWork
from service.errors import Conflict, FieldError
from service.recommend.policy import Policy
from service.recommend.recent_activity import storm_key
from service.resubmissions.records import OPEN_STATES, HookAnswer, Request, StoredRequest

_ENDED_WITHOUT_ANSWER = frozenset({"withdrawn", "expired"})


def acknowledge(
    store: Store,
    request_id: str,
    token: str,
    answer: HookAnswer,
    *,
    clock: Clock,
    policy: Policy,
) -> Request:
    """Record a hook's answer. The same answer given twice has the same result.

    Raises:
        NotFound: no such request.
        Conflict: the request was withdrawn meanwhile (the result is recorded all the same), or another lease is valid.
    """
    with store.unit_of_work() as work:
        request = work.requests.stored_for_update(request_id)
        _check_token(request, token)
        if request.result is not None and request.state not in _ENDED_WITHOUT_ANSWER:
            if (request.result, request.new_job_id) != (answer.result, answer.new_job_id):
                raise Conflict(
                    f"request {request_id} was answered with {request.result} before", _field_error(request.result)
                )
            return work.requests.get(request_id)
        # An expired lease leaves the request waiting or held; its last holder may still report the result.
        if request.state in OPEN_STATES or (request.state == "done" and request.outcome is not None):
            answered = work.leases.record_answer(request, answer)
            if answer.result in {"done", "already_done"}:
                _record_job(work, request, answered, answer.result, policy=policy, clock=clock)
                return work.requests.get(request_id)
            _record_suppressed(work, request, answered, answer.result, clock)
            return answered
        if request.state in _ENDED_WITHOUT_ANSWER and request.result is None and answer.result in {"done", "unknown"}:
            work.leases.record_answer(request, answer, state="withdrawn")
            [answered] = work.requests.retract([request_id])
            text = f"the hook answered {answer.result} after it was withdrawn"
            _record_job(work, request, answered, text, policy=policy, clock=clock)
    raise Conflict(f"request {request_id} is {request.state}: {request.detail}", _field_error(request.state))


def fail(
    store: Store,
    request_id: str,
    token: str,
    error: str,
    retry_after_s: float | None,
    *,
    clock: Clock,
) -> Request:
    """Record that a hook could not act: the request is leased again after `retry_after_s`, or has failed.

    It has failed if no time is given or after too many tries. The time doubles with each try, so that a scheduler that
    does not answer for some hours does not end the requests.

    Raises:
        NotFound: no such request.
        Conflict: the request was withdrawn meanwhile, or another lease is valid.
    """
    with store.unit_of_work() as work:
        request = work.requests.stored_for_update(request_id)
        _check_token(request, token)
        if request.state == "failed":
            return work.requests.get(request_id)
        if request.state != "leased":
            message = f"request {request_id} is {request.state}: {request.detail or ''}".rstrip(": ")
            raise Conflict(message, _field_error(request.state))
        if retry_after_s is not None and request.tries + 1 < MAX_TRIES:
            pause = max(retry_after_s, pause_after(request.tries + 1, retry_after_s, LONGEST_RETRY_S))
            not_before = clock.now() + timedelta(seconds=pause)
            return work.leases.return_to_queue(request, not_before=not_before, detail=error)
        [failed] = work.requests.end([request_id], "failed", detail=error)
        work.outbox.add([notifications.of_request("resubmission.failed", failed, error[:300])])
        record_no_job(work, request, "the hook could not carry it out", clock)
        return failed


def record_no_job(work: UnitOfWork, request: StoredRequest, why: str, clock: Clock) -> None:
    """A request ended without starting a job: if it was a probe or trial, another request may be chosen."""
    for incident in work.incidents.opened(request.cluster):
        if incident.probe_row == request.id:
            incident_probes.keep_holding(work, incident, request.job_id, why, clock.now())
    key = storm_key(request.cluster, request.cause, request.resource)
    work.storms.end_trial(key, request.id)


def _record_job(
    work: UnitOfWork,
    stored: StoredRequest,
    answered: Request,
    text: str,
    *,
    policy: Policy,
    clock: Clock,
) -> None:
    """The hook started a job: it belongs to the lineage, and its end may be stored already."""
    lineage.add_resubmitted_job(work, stored, answered.new_job_id)
    work.outbox.add([notifications.of_request("resubmission.done", answered, text)])
    outcome_matching.match_stored_end(work, answered, policy=policy, clock=clock)


def _record_suppressed(
    work: UnitOfWork, stored: StoredRequest, answered: Request, result: AckResult, clock: Clock
) -> None:
    work.outbox.add([notifications.of_request("resubmission.suppressed", answered, f"the hook answered {result}")])
    if result == "refused":
        record_no_job(work, stored, "the hook refused it", clock)


def _check_token(request: StoredRequest, token: str) -> None:
    if request.lease_token is None or request.lease_token != token:
        raise Conflict(
            f"request {request.request_id}: this lease is no longer valid",
            (FieldError("lease_token", "the token of the valid lease"),),
        )


def _field_error(got: str) -> tuple[FieldError, ...]:
    return (FieldError("result", "the first answer to a leased request", got),)
