"""Asks the cluster for what belongs to a pod's failure: its Job, its logs, what was said of it and of its node."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from service.contracts.event import JobCompletion, LogRef, NodeEventIn, Status
from service.errors import FaultlineError, UnreadableRecord
from service.formats import field_reading, kubernetes_containers, kubernetes_meta
from service.kubernetes.errors import ClusterUnavailable, ObjectNotFound, RequestRefused
from service.kubernetes.paths import Object, collection, named
from service.watch import job_end_mapper, node_watch
from service.watch.node_watch import NodeStates
from service.watch.pod_history import PodEnd, PodEndHistory, root, with_root
from service.watch.pod_logs import PodLogReader

log = logging.getLogger(__name__)

EVENTS_MOST = 30
PODS_LOOKED_AT = 100
# A node says these when all is well.
BENIGN = frozenset({
    "RegisteredNode", "Starting", "NodeReady", "NodeAllocatableEnforced", "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure", "NodeHasSufficientDisk", "NodeHasSufficientPID",
})  # fmt: skip
# Each pod waits for these, for a moment.
STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Api(Protocol):
    """What is asked of the cluster (service.kubernetes.api.KubernetesApi)."""

    def get(self, path: str, query: dict[str, Any] | None = None) -> Object:
        """See there."""
        ...


class EvidenceCollector:
    """Completes events of failed pods, and of the Jobs that failed by them.

    Args:
        api: the cluster.
        node_states: the nodes as they are now.
        logs: reads log tails; None: they are not read.
    """

    def __init__(self, api: Api, node_states: NodeStates, logs: PodLogReader | None) -> None:
        self._api = api
        self._nodes = node_states
        self._logs = logs
        self._pods = PodEndHistory()

    def complete(self, event: JobCompletion, pod: Mapping[str, Any]) -> JobCompletion:
        """The event with all that can be known now.

        Raises:
            ClusterUnavailable: the cluster does not answer; ask again.
        """
        meta = kubernetes_meta.read_meta(pod)
        if (name := job_end_mapper.owner_job(meta)) is not None and (
            job := self._job(meta.namespace, name)
        ) is not None:
            try:
                event = job_end_mapper.with_job(event, pod, job)
            except UnreadableRecord as error:
                log.warning("the Job %s/%s can't be read: %s", meta.namespace, name, error.reason)
        node = event.nodes[0] if event.nodes else None
        lines = self._said("Pod", meta.name, meta.namespace, node, uid=meta.uid)
        if node is not None:
            lines += self._nodes.lines(node) + self._said("Node", node, None, node)
        tails: tuple[LogRef, ...] = ()
        if self._logs is not None:
            containers = kubernetes_containers.read(field_reading.mapping(pod, "status"))
            tails = self._logs.of(pod, containers, kubernetes_meta.completion_index(meta))
        whole = job_end_mapper.with_evidence(
            event,
            lost=node is not None and self._nodes.lost(node),
            lines=sorted(lines, key=lambda line: line.at or _LONG_AGO),
            logs=tails,
        )
        if (owner := job_end_mapper.owner_uid(pod)) is not None and meta.uid is not None:
            self._pods.put(owner, PodEnd(meta.uid, meta.created_at or whole.ended_at, whole))
        return whole

    def observe_pod(self, pod: Mapping[str, Any]) -> None:
        """A pod that has not ended: what it waits for is known only as long as it is there."""
        if (job := job_end_mapper.owner_uid(pod)) is None:
            return
        for one in kubernetes_containers.read(field_reading.mapping(pod, "status")):
            if one.waiting is not None and one.waiting not in STARTING:
                said = [one.name, one.waiting, one.waiting_message]
                self._pods.wait(job, ": ".join(part for part in said if part))

    def complete_job(self, event: JobCompletion, job: Mapping[str, Any], cluster: str) -> JobCompletion:
        """A failed Job's own end with what its decisive pod said.

        Raises:
            ClusterUnavailable: the cluster does not answer; ask again.
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
                told = job_end_mapper.read("Pod", {"kind": "Pod", **pod}, cluster)
            except UnreadableRecord:
                continue
            uid, created = pod["metadata"].get("uid"), kubernetes_meta.read_meta(pod).created_at
            if isinstance(told, JobCompletion) and told.status is not Status.SUCCEEDED and uid not in known:
                known[uid] = PodEnd(uid, created or told.ended_at, told)
                unread[uid] = pod
        decisive = root(list(known.values()))
        if decisive is not None and decisive.uid in unread:
            decisive = PodEnd(decisive.uid, decisive.created_at, self.complete(decisive.event, unread[decisive.uid]))
        return with_root(event, decisive, self._pods.waiting(meta.uid))

    def gone(self, job: Mapping[str, Any]) -> None:
        """A Job was deleted."""
        if isinstance(uid := field_reading.mapping(job, "metadata").get("uid"), str):
            self._pods.forget(uid)

    def _job(self, namespace: str, name: str) -> Object | None:
        try:
            return self._api.get(named("batch/v1", "jobs", namespace, name))
        except ObjectNotFound:
            return None
        except RequestRefused as error:
            log.warning("%s", error.detail)
            return None

    def _said(
        self, kind: str, name: str, namespace: str | None, node: str | None, uid: str | None = None
    ) -> list[NodeEventIn]:
        """The cluster's Events about an object; none where they can't be had: they only help."""
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
