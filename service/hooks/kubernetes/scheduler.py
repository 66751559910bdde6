"""Kubernetes: creates a new Job from the spec of the old one, after the old one has failed permanently.

The name of the new Job is derived from the request id, so a second attempt to create it is rejected as a conflict. The
old Job and its pods are left unchanged for later inspection.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from service.clock import Clock, SystemClock
from service.contracts.advice import OPT_IN_LABEL, REQUEST_LABEL
from service.contracts.kubernetes_name import KubernetesName, kubernetes_name
from service.errors import ConfigurationError, FaultlineError, UnreadableRecord
from service.formats import field_reading
from service.formats.kubernetes import containers as kubernetes_containers
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes.job import retrier
from service.hooks.kubernetes import manifest
from service.hooks.kubernetes.manifest import ManifestError
from service.hooks.request import Failed, Lease, Ready, Request, SchedulerUnavailable, Settled, opt_in_objection
from service.kubernetes.errors import (
    AlreadyExists,
    ClusterUnavailable,
    ObjectNotFound,
    RequestRefused,
    VersionExpired,
)
from service.kubernetes.paths import Object, collection, named
from service.times import rfc3339

log = logging.getLogger(__name__)

OWN_CONTROLLER = "kubernetes.io/job-controller"
BATCH = "batch/v1"
ENDING_RETRY_S = 20.0
CLOCKS = timedelta(seconds=5)  # maximum clock difference between cluster and service
# How long a created Job can certainly be found if no setting deletes it earlier.
LIFETIME = timedelta(hours=1)
SHORTEST_LIFETIME = timedelta(seconds=30)
PODS_MOST = 500
NOTE_MOST = 1_000
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/: an RFC 1123 label, and subdomain
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class Api(Protocol):
    """The methods of the cluster client that are used here (service.kubernetes.api.KubernetesApi)."""

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        """See `KubernetesApi`."""
        ...

    def create(self, path: str, body: Mapping[str, Any], query: Mapping[str, Any] | None = None) -> Object:
        """See `KubernetesApi`."""
        ...

    def close(self) -> None:
        """See `KubernetesApi`."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """The parsed parts of a job id."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        return named(BATCH, "jobs", self.namespace, self.name)

    @property
    def job_id(self) -> str:
        return str(KubernetesName(self.namespace, "Job", self.name))


class KubernetesScheduler:
    """See `service.hooks.request.Scheduler`.

    Args:
        api: the client of the cluster.
        clock: used to compute the time since an earlier attempt.
    """

    kind = "kubernetes"
    can_look_up = True

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        """See `Scheduler`."""
        place = _place(request.job_id)
        if place is None:
            return Settled("refused", "not a Kubernetes Job (namespace/Job/name)")
        try:
            return self._look(place, request, begun_at)
        except ObjectNotFound:
            return _gone(begun_at)
        except (FaultlineError, ManifestError) as error:
            if begun_at is not None and isinstance(error, RequestRefused):  # the new Job may exist all the same
                raise SchedulerUnavailable(error.detail) from None
            return _as_refusal(error)

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        """See `Scheduler`."""
        place = _place(request.job_id)
        assert place is not None, "look refuses it"
        try:
            return self._act(place, request, lease)
        except (FaultlineError, ManifestError) as error:  # forbidden, over a quota, rejected by an admission webhook
            return _as_refusal(error)

    def _look(self, place: _Place, request: Request, begun_at: datetime | None) -> Ready | Settled | Failed:
        if (settled := self._made(place, request)) is not None:
            if begun_at is None and request.extra.get("lease_count") == 1:  # nobody can have begun it before
                return Settled("refused", f"another program or person created {settled.new_job_id or 'its new Job'}")
            return settled
        job = self._api.get(place.path)
        if (against := self._against(job, request, begun_at)) is not None:
            return against
        made = manifest.new_job(job, request)["metadata"]
        without = f", not on {', '.join(request.exclude_nodes)}" if request.exclude_nodes else ""
        return Ready(f"create Job {made['namespace']}/{made['name']}{without}")

    def _act(self, place: _Place, request: Request, lease: Lease) -> Settled | Failed:
        job = self._api.get(place.path)
        if (against := self._against(job, request, None)) is not None:  # the owner may have changed it meanwhile
            return against
        body = manifest.new_job(job, request, self._killed(place) if request.changes.get("memory_bytes") else None)
        lease.check()
        try:
            self._api.create(collection(BATCH, "jobs", place.namespace), body)
        except AlreadyExists:
            return self._made(place, request) or Settled("unknown", "the new Job was there, and is gone again")
        made = _Place(place.namespace, body["metadata"]["name"])
        self._write_event(job, request, made)
        return Settled("done", f"created Job {made.namespace}/{made.name}{request.exclusion()}", made.job_id)

    def maintain(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """See `Scheduler`."""
        self._api.close()

    def _made(self, place: _Place, request: Request) -> Settled | None:
        """Check whether a Job with the new name exists already."""
        new = _Place(place.namespace, manifest.new_job_name(place.name, request.request_id))
        try:
            found = self._api.get(new.path)
        except ObjectNotFound:
            return None
        annotations = field_reading.mapping(field_reading.mapping(found, "metadata"), "annotations", "metadata.")
        if annotations.get(REQUEST_LABEL) != request.request_id:
            return Settled("refused", f"there is another Job of the name {new.name}")
        return Settled("done", f"Job {new.namespace}/{new.name} was created before", new.job_id)

    def _against(self, job: Object, request: Request, begun_at: datetime | None) -> Settled | Failed | None:
        """Return the reason not to create a new Job; None: there is no reason.

        Raises:
            UnreadableRecord: a field of the Job is invalid; the error names it.
        """
        meta = kubernetes_meta.read_meta(job)
        spec = field_reading.mapping(job, "spec")
        why = _another(meta, request) or self._ending(job) or _refusal(job, meta, request)
        if why is not None or begun_at is None:
            return why
        lifetime = LIFETIME
        if (ttl := field_reading.whole(spec, "ttlSecondsAfterFinished", "spec.")) is not None:
            lifetime = max(timedelta(seconds=ttl), SHORTEST_LIFETIME)
        if self._clock.now() - begun_at > lifetime:
            return Settled("unknown", "it was begun, and so long ago that the new Job may have ended and been deleted")
        return None

    def _ending(self, job: Object) -> Settled | Failed | None:
        """Evaluate the conditions of the Job; None: it has failed permanently."""
        status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
        conditions = kubernetes_meta.true_conditions(status)
        if "Complete" in conditions:
            return Settled("already_done", "the Job has succeeded")
        if (failed := conditions.get("Failed")) is not None:
            if failed.reason == "PodFailurePolicy":
                return Settled(
                    "refused", f"the Job's own podFailurePolicy ended it: {failed.message or ''}".rstrip(": ")
                )
            return None
        why = f"the Job goes on by itself: {retrier(job) or 'its pods still run'}"
        if "FailureTarget" in conditions:
            return Failed("the Job fails, and its last pods are still being ended", ENDING_RETRY_S)
        if spec.get("suspend") is True:
            why = "the Job is suspended: its queue, or a person, holds it"
        elif not status.get("active") and (not status.get("failed") or _uncounted(status)):
            return Failed("the Job has not counted its last pod's end yet", ENDING_RETRY_S)
        return Settled("refused", why)

    def _killed(self, place: _Place) -> str | None:
        """Return the container in the Job's last pods that was killed for exceeding its memory limit; None: unknown."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={place.name}", "limit": PODS_MOST}
        try:
            pods = self._api.get(collection("v1", "pods", place.namespace), query).get("items") or ()
            ended = [one for pod in pods for one in kubernetes_containers.read(field_reading.mapping(pod, "status"))]
        except (FaultlineError, SchedulerUnavailable):
            return None
        return next((one.name for one in ended if one.reason == "OOMKilled"), None)

    def _write_event(self, job: Object, request: Request, made: _Place) -> None:
        """Create an Event on the old Job for its users; errors are ignored."""
        meta = field_reading.mapping(job, "metadata")
        now = rfc3339(self._clock.now().astimezone(UTC))
        why = "; ".join(str(one) for one in request.reasons)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "faultline-", "namespace": made.namespace},
            "involvedObject": {
                "apiVersion": BATCH,
                "kind": "Job",
                "namespace": made.namespace,
                "name": meta.get("name"),
                "uid": meta.get("uid"),
            },
            "reason": "Resubmitted",
            "message": f"Faultline created Job {made.name}{request.exclusion()}. {why}"[:NOTE_MOST],
            "type": "Normal",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": "faultline-hook"},
        }
        try:
            self._api.create(collection("v1", "events", made.namespace), event)
        except FaultlineError as error:
            log.info("no Event is written on %s: %s", request.job_id, error.detail)


def connect(kubeconfig: str | None = None, context: str | None = None) -> KubernetesScheduler:
    """Connect to the cluster of a kubeconfig, or to the cluster that this process runs in.

    Raises:
        ConfigurationError: there is no cluster, or the client is not installed.
    """
    try:
        from service.kubernetes import api as cluster  # noqa: PLC0415 - the client is an extra
    except ImportError as error:
        raise ConfigurationError(
            f"this needs the Kubernetes client: pip install 'faultline[kubernetes]' ({error})"
        ) from None
    api = cluster.connect(None if kubeconfig is None else Path(kubeconfig), context)
    return KubernetesScheduler(api, SystemClock())


def _gone(begun_at: datetime | None) -> Settled:
    if begun_at is not None:
        return Settled("unknown", "the Job was deleted, and whether a new one was created is unknown")
    return Settled("refused", "the Job was deleted: there is no spec left to start again")


def _as_refusal(error: FaultlineError | ManifestError) -> Settled:
    """Return a permanent rejection.

    Raises:
        SchedulerUnavailable: the cluster did not answer, so it is not a rejection.
    """
    if isinstance(error, ClusterUnavailable | VersionExpired):
        raise SchedulerUnavailable(error.detail) from None
    if isinstance(error, UnreadableRecord):
        return Settled("refused", f"the Job can't be read: {error.reason}")
    return Settled("refused", error.detail if isinstance(error, FaultlineError) else str(error))


def _place(job_id: str) -> _Place | None:
    job = kubernetes_name(job_id)
    if job is None or job.kind != "Job":
        return None
    valid = _NAMESPACE.fullmatch(job.namespace) and _NAME.fullmatch(job.name)
    return _Place(job.namespace, job.name) if valid else None


def _another(meta: kubernetes_meta.Meta, request: Request) -> Settled | None:
    """Detect a newer Job that reuses the name of the old one."""
    until = request.ended_before
    if until is not None and meta.created_at is not None and meta.created_at > until + CLOCKS:
        return Settled(
            "already_done", "a Job of this name was created again since then, by another program or a person"
        )
    return None


def _refusal(job: Object, meta: kubernetes_meta.Meta, request: Request) -> Settled | None:
    """Return the objection of the Job's owner or controller, if any."""
    manager = field_reading.mapping(job, "spec").get("managedBy")
    objection = opt_in_objection(request, _owner_mode(job), "the Job", separator=": ")
    why = None
    if objection is not None:
        why = objection
    elif meta.owner is not None and meta.owner[0] != "CronJob":
        why = f"{meta.owner[0]} {meta.owner[1]} controls the Job, and decides what follows"
    elif manager not in {None, OWN_CONTROLLER}:
        why = f"{manager} manages the Job"
    elif meta.deleted_at is not None:
        why = "the Job is being deleted"
    return None if why is None else Settled("refused", why)


def _owner_mode(job: Object) -> str | None:
    """Return the mode that the owner set on the Job or on its pods; if they differ, the more cautious one."""
    template = field_reading.mapping(field_reading.mapping(job, "spec"), "template", "spec.")
    opt_ins = [
        field_reading.mapping(field_reading.mapping(one, "metadata", path), key, f"{path}metadata.").get(OPT_IN_LABEL)
        for one, path in ((job, ""), (template, "spec.template."))
        for key in ("annotations", "labels")
    ]
    given = [word for word in opt_ins if isinstance(word, str)]
    return next((word for word in ("never", "advise") if word in given), given[0] if given else None)


def _uncounted(status: Mapping[str, Any]) -> bool:
    uncounted = status.get("uncountedTerminatedPods")
    return isinstance(uncounted, Mapping) and bool(uncounted.get("failed") or uncounted.get("succeeded"))
