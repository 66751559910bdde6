"""Asks the cluster for what belongs to a pod's failure: its Job, its logs, what was said of it and of its node."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from service.errors import FaultlineError, UnreadableRecord
from service.events import JobCompletion, LogRef, NodeEventIn
from service.formats import fields, kubernetes_containers, kubernetes_meta
from service.kubernetes.errors import Absent, ClusterAway, Refused
from service.kubernetes.paths import Object, collection, named
from service.watch import ends, nodes
from service.watch.logs import LogTails
from service.watch.nodes import Nodes

log = logging.getLogger(__name__)

EVENTS_MOST = 30
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Api(Protocol):
    """What is asked of the cluster (service.kubernetes.api.KubernetesApi)."""

    def get(self, path: str, query: dict[str, Any] | None = None) -> Object:
        """See there."""
        ...


class Evidence:
    """Completes events of failed pods.

    Args:
        api: the cluster.
        node_states: the nodes as they are now.
        logs: reads log tails; None: they are not read.
    """

    def __init__(self, api: Api, node_states: Nodes, logs: LogTails | None) -> None:
        self._api = api
        self._nodes = node_states
        self._logs = logs

    def complete(self, event: JobCompletion, pod: Mapping[str, Any]) -> JobCompletion:
        """The event with all that can be known now.

        Raises:
            ClusterAway: the cluster does not answer; ask again.
        """
        meta = kubernetes_meta.read_meta(pod)
        if (name := ends.owner_job(meta)) is not None and (job := self._job(meta.namespace, name)) is not None:
            try:
                event = ends.with_job(event, pod, job)
            except UnreadableRecord as error:
                log.warning("the Job %s/%s can't be read: %s", meta.namespace, name, error.reason)
        node = event.nodes[0] if event.nodes else None
        lines = self._said("Pod", meta.name, meta.namespace, node, uid=meta.uid)
        if node is not None:
            lines += self._nodes.lines(node) + self._said("Node", node, None, node)
        tails: tuple[LogRef, ...] = ()
        if self._logs is not None:
            containers = kubernetes_containers.read(fields.mapping(pod, "status"))
            tails = self._logs.of(pod, containers, kubernetes_meta.completion_index(meta))
        return ends.with_evidence(
            event,
            lost=node is not None and self._nodes.lost(node),
            lines=sorted(lines, key=lambda line: line.at or _LONG_AGO),
            logs=tails,
        )

    def _job(self, namespace: str, name: str) -> Object | None:
        try:
            return self._api.get(named("batch/v1", "jobs", namespace, name))
        except Absent:
            return None
        except Refused as error:
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
        except (ClusterAway, Refused, FaultlineError) as error:
            log.info("no events of %s %s: %s", kind, name, error)
            return []
        wanted = [one for one in found if kind == "Node" or one.get("type") == "Warning"]
        return [line for one in wanted if (line := nodes.event_line(one, node)) is not None]
