"""Fetches the evidence of a pod's failure from the cluster: its Job, its logs, and Events of the pod and its node."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from service.contracts.event import JobCompletion, LogRef, NodeEventIn, Status
from service.contracts.kubernetes_name import kubernetes_name
from service.errors import FaultlineError, UnreadableRecord
from service.formats import field_reading
from service.formats.kubernetes import containers as kubernetes_containers
from service.formats.kubernetes import meta as kubernetes_meta
from service.kubernetes.errors import ClusterUnavailable, ObjectNotFound, RequestRefused
from service.kubernetes.paths import Object, collection, named
from service.times import MIN_TIME
from service.watch import job_end_mapper, node_watch
from service.watch.node_watch import NodeStates
from service.watch.pod_history import PodEnd, PodEndHistory, root, with_root
from service.watch.pod_logs import PodLogReader

log = logging.getLogger(__name__)

EVENTS_MOST = 30
PODS_LOOKED_AT = 100
# Node Events without a problem.
BENIGN = frozenset({
    "RegisteredNode", "Starting", "NodeReady", "NodeAllocatableEnforced", "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure", "NodeHasSufficientDisk", "NodeHasSufficientPID",
})  # fmt: skip
# Every pod is briefly in these waiting states.
STARTING = frozenset({"ContainerCreating", "PodInitializing"})


class Api(Protocol):
    """The methods of the cluster client that are used here (service.kubernetes.api.KubernetesApi)."""

    def get(self, path: str, query: dict[str, Any] | None = None) -> Object:
        """See `KubernetesApi`."""
        ...


class EvidenceCollector:
    """Adds evidence to the events of failed pods and of the Jobs that failed because of them.

    Args:
        api: the client of the cluster.
        node_states: the current states of the nodes.
        logs: reads log tails; None: they are not read.
    """

    def __init__(self, api: Api, node_states: NodeStates, logs: PodLogReader | None) -> None:
        self._api = api
        self._nodes = node_states
        self._logs = logs
        self._pods = PodEndHistory()

    def complete(self, event: JobCompletion, pod: Mapping[str, Any]) -> JobCompletion:
        """Return the event with all evidence that is available now.

        Raises:
            ClusterUnavailable: the cluster does not answer; try again.
        """
        meta = kubernetes_meta.read_meta(pod)
        if (name := job_end_mapper.owner_job(meta)) is not None and (
            job := self._job(meta.namespace, name, job_end_mapper.owner_uid(pod))
        ) is not None:
            try:
                event = job_end_mapper.with_job(event, pod, job)
            except UnreadableRecord as error:
                log.warning("the Job %s/%s can't be read: %s", meta.namespace, name, error.reason)
        node = event.nodes[0] if event.nodes else None
        lines = self._event_lines("Pod", meta.name, meta.namespace, node, uid=meta.uid)
        if node is not None:
            lines += self._nodes.lines(node) + self._event_lines("Node", node, None, node)
        tails: tuple[LogRef, ...] = ()
        if self._logs is not None:
            containers = kubernetes_containers.read(field_reading.mapping(pod, "status"))
            tails = self._logs.of(pod, containers, kubernetes_meta.completion_index(meta))
        whole = job_end_mapper.with_evidence(
            event,
            lost=node is not None and self._nodes.lost(node),
            lines=sorted(lines, key=lambda line: line.at or MIN_TIME),
            logs=tails,
        )
        if meta.uid is not None:
            end = PodEnd(meta.uid, meta.created_at or whole.ended_at, whole)
            if (owner := job_end_mapper.owner_uid(pod)) is not None:
                self._pods.put(owner, end)
            named_job = kubernetes_name(whole.job_id)
            if named_job is not None and named_job.kind not in {"Job", "Pod"}:
                self._pods.put(whole.job_id, end)
        return whole

    def observe_job(self, job: Mapping[str, Any]) -> None:
        """Record whose Job a Job is."""
        meta = kubernetes_meta.read_meta(job)
        if meta.uid is not None:
            self._pods.join(meta.uid, str(kubernetes_meta.job_name(meta, "Job")))

    def under_its_job(self, event: JobCompletion, pod: Mapping[str, Any]) -> JobCompletion:
        """Return a pod's completion under the outermost controller of its Job, which the pod itself may not name.

        Raises:
            ClusterUnavailable: the cluster does not answer; try again.
        """
        meta = kubernetes_meta.read_meta(pod)
        uid, name = job_end_mapper.owner_uid(pod), job_end_mapper.owner_job(meta)
        if uid is None or name is None:
            return event
        if self._pods.owner(uid) is None and (job := self._job(meta.namespace, name, uid)) is not None:
            try:
                self.observe_job(job)
            except UnreadableRecord as error:
                log.warning("the Job %s/%s can't be read: %s", meta.namespace, name, error.reason)
        owner = self._pods.owner(uid) or event.job_id
        return event.model_copy(update={"job_id": owner, "name": owner.rpartition("/")[2]})

    def observe_pod(self, pod: Mapping[str, Any]) -> None:
        """Record a waiting pod: its waiting reason is available only while the pod exists."""
        if (job := job_end_mapper.owner_uid(pod)) is None:
            return
        for one in kubernetes_containers.read(field_reading.mapping(pod, "status")):
            if one.waiting is not None and one.waiting not in STARTING:
                texts = [one.name, one.waiting, one.waiting_message]
                self._pods.wait(job, ": ".join(part for part in texts if part))

    def complete_job(self, event: JobCompletion, job: Mapping[str, Any], cluster: str) -> JobCompletion:
        """Return the completion of a failed Job with the evidence of its decisive pod.

        Raises:
            ClusterUnavailable: the cluster does not answer; try again.
        """
        meta = kubernetes_meta.read_meta(job)
        if meta.uid is None:
            return event
        known = {end.uid: end for end in self._pods.of(meta.uid)}
        query = {"labelSelector": f"batch.kubernetes.io/controller-uid={meta.uid}", "limit": PODS_LOOKED_AT}
        try:
            found = self._api.get(collection("v1", "pods", meta.namespace), query).get("items") or ()
        except RequestRefused as error:
            log.info("no pods of %s: %s", event.job_id, error.detail)
            found = ()
        unread = {}
        for pod in found:
            try:
                pod_end = job_end_mapper.read("Pod", {"kind": "Pod", **pod}, cluster)
            except UnreadableRecord:
                continue
            uid, created = pod["metadata"].get("uid"), kubernetes_meta.read_meta(pod).created_at
            if isinstance(pod_end, JobCompletion) and pod_end.status is not Status.SUCCEEDED and uid not in known:
                known[uid] = PodEnd(uid, created or pod_end.ended_at, pod_end)
                unread[uid] = pod
        decisive = root(list(known.values()))
        if decisive is not None and decisive.uid in unread:
            decisive = PodEnd(decisive.uid, decisive.created_at, self.complete(decisive.event, unread[decisive.uid]))
        return with_root(event, decisive, self._pods.waiting(meta.uid))

    def complete_owner(self, event: JobCompletion) -> JobCompletion:
        """Return the completion of a failed owner of Jobs or pods, with the evidence of its decisive pod."""
        return with_root(event, root(self._pods.of(event.job_id)), None, summary=event.status is Status.FAILED)

    def gone(self, kind: str, obj: Mapping[str, Any]) -> None:
        """Handle the deletion of a Job, or of an owner of Jobs or pods."""
        meta = kubernetes_meta.read_meta(obj)
        self._pods.forget(str(meta.full_name(kind)))
        if meta.uid is not None:
            self._pods.forget(meta.uid)

    def _job(self, namespace: str, name: str, uid: str | None) -> Object | None:
        """Return a Job; None if it is gone, or another one has its name now."""
        try:
            job = self._api.get(named("batch/v1", "jobs", namespace, name))
            return job if field_reading.mapping(job, "metadata").get("uid", uid) == uid else None
        except ObjectNotFound:
            return None
        except RequestRefused as error:
            log.warning("%s", error.detail)
            return None

    def _event_lines(
        self, kind: str, name: str, namespace: str | None, node: str | None, uid: str | None = None
    ) -> list[NodeEventIn]:
        """Return the cluster's Events about an object; empty if unavailable, since they are optional evidence."""
        selector = f"involvedObject.kind={kind},involvedObject.name={name}" + (
            f",involvedObject.uid={uid}" if uid else ""
        )
        query = {"fieldSelector": selector, "limit": EVENTS_MOST}
        try:
            found = self._api.get(collection("v1", "events", namespace), query).get("items") or ()
        except (ClusterUnavailable, RequestRefused, FaultlineError) as error:
            log.info("no events of %s %s: %s", kind, name, error)
            return []
        wanted = [one for one in found if one.get("reason") not in BENIGN and (kind == "Node" or _warns(one))]
        return [line for one in wanted if (line := node_watch.event_line(one, node)) is not None]


def _warns(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "Warning"
