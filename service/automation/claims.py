"""Claims of a job to be the resubmission of another one. Whoever submits a job chooses its labels.

A claim is believed only if the same person owns both jobs. Otherwise anybody could join the lineage of another person's
job with a label, and then stop its resubmissions, use up its limits, or end its requests with an own result.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from service.contracts.advice import LINEAGE_LABEL, REQUEST_LABEL
from service.contracts.event import JobCompletion
from service.contracts.kubernetes_name import kubernetes_name
from service.db.session import UnitOfWork
from service.errors import NotFound
from service.resubmissions.records import StoredRequest

_LONGEST_JOB = 200  # characters of a job id
_LONGEST_REQUEST = 40


@dataclass(frozen=True, slots=True)
class CheckedClaims:
    """Events without the claims that are wrong, by attempt id.

    `unconfirmed`: attempts whose `resubmit_of` names a job of which nothing is stored.
    """

    events: Mapping[int, JobCompletion]
    unconfirmed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Owner:
    """Who owns a job. On Kubernetes the user is a label too, so the namespace has to be the same as well."""

    cluster: str
    user: str | None
    namespace: str | None


def check(work: UnitOfWork, events: Mapping[int, JobCompletion]) -> CheckedClaims:
    """The events with only those claims that name a job or request of the same owner."""
    claiming = {number: event for number, event in events.items() if _claims(event)}
    if not claiming:
        return CheckedClaims(events)
    requests = _requests(work, claiming.values())
    owners = _owners(work, claiming.values(), events.values())
    checked = dict(events)
    unconfirmed: set[int] = set()
    for number, event in claiming.items():
        own = _owner(event.cluster, event.user, event.job_id)
        mine = [one for one in requests if _owner(one.cluster, one.user, one.job_id) == own]
        original = original_of(event)
        known = owners.get((event.cluster, original or ""), set())
        if original is not None and known and own not in known:
            original = None
        elif original is not None and not known:
            unconfirmed.add(number)
        labels = {name: value for name, value in event.labels.items() if not _is_wrong(name, value, mine)}
        checked[number] = event.model_copy(update={"labels": labels, "resubmit_of": original})
    return CheckedClaims(checked, frozenset(unconfirmed))


def original_of(event: JobCompletion) -> str | None:
    """The job that this one claims to resubmit, as it is stored."""
    return event.resubmit_of[:_LONGEST_JOB] if event.resubmit_of else None


def _claims(event: JobCompletion) -> bool:
    return bool(event.resubmit_of) or LINEAGE_LABEL in event.labels or REQUEST_LABEL in event.labels


def _is_wrong(label: str, value: str, own_requests: Iterable[StoredRequest]) -> bool:
    """Whether a label names a lineage or a request of which the job's owner has no request."""
    if label == LINEAGE_LABEL:
        return all(one.lineage != value for one in own_requests)
    return label == REQUEST_LABEL and all(one.request_id != value[:_LONGEST_REQUEST] for one in own_requests)


def _requests(work: UnitOfWork, claiming: Iterable[JobCompletion]) -> list[StoredRequest]:
    """The requests that the labels of these events name."""
    lineages: set[str] = set()
    ids: set[str] = set()
    for event in claiming:
        lineages |= {event.labels[LINEAGE_LABEL]} if LINEAGE_LABEL in event.labels else set()
        ids |= {event.labels[REQUEST_LABEL][:_LONGEST_REQUEST]} if REQUEST_LABEL in event.labels else set()
    found = work.requests.of_lineages(lineages)
    for request_id in sorted(ids - {one.request_id for one in found}):
        with suppress(NotFound):
            found.append(work.requests.stored(request_id))
    return found


def _owners(
    work: UnitOfWork, claiming: Iterable[JobCompletion], batch: Iterable[JobCompletion]
) -> dict[tuple[str, str], set[_Owner]]:
    """The owners of the jobs that are claimed as originals, by cluster and job id, stored or in this batch."""
    wanted = {(event.cluster, original) for event in claiming if (original := original_of(event)) is not None}
    found: dict[tuple[str, str], set[_Owner]] = {}
    stored = work.lineages.attempts(wanted) if wanted else ()
    for one in (*stored, *batch):
        job = (one.cluster, one.job_id)
        if job in wanted:
            found.setdefault(job, set()).add(_owner(one.cluster, one.user, one.job_id))
    return found


def _owner(cluster: str, user: str | None, job_id: str) -> _Owner:
    job = kubernetes_name(job_id)
    return _Owner(cluster, user, None if job is None else job.namespace)
