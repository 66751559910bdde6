"""The watcher: observe collections, send events, then save the position to disk, in this order.

After a crash it continues from the last saved state; events sent again have the same ids.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from classifiers.redaction import redact
from service.backoff import Backoff
from service.clock import Clock
from service.contracts.event import JobCompletion, Status
from service.errors import ConfigurationError, FaultlineError, TooLarge, Unavailable, UnreadableRecord
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import meta as kubernetes_meta
from service.kubernetes.errors import ClusterUnavailable
from service.kubernetes.paths import Object
from service.shutdown import ShutdownFlag
from service.watch import job_end_mapper, node_watch
from service.watch import watch_state as states
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.event_sender import Sender
from service.watch.metrics import WatcherMetrics
from service.watch.node_watch import NodeStates
from service.watch.reflector import Api, Collection, Observation, follow
from service.watch.watch_state import Running, State

log = logging.getLogger(__name__)

# A small number, since objects may be large; a batch is sent before the next one is read.
WAITING_MOST = 200
BATCH = 100
IDLE_S = 1.0
# If there was nothing to send, the position is saved only at this interval.
SAVE_EVERY_S = 5.0
REFUSED_PAUSE_S = 60.0
# Ends of jobs are read after the nodes, which say whether a node is lost and where it is; without an answer for so
# long (such as no right to list nodes), they are read without.
NODES_FIRST_S = 30.0
SHORT = 1_000
_NODE, _EVENT = "Node", "Event"
# Owners of long-running pods: a pod that ends is replaced, so no job has ended.
SERVICES = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Node"})


def collections(namespaces: Sequence[str], labels: str | None, *, with_nodes: bool) -> list[Collection]:
    """Return the collections to watch: Jobs and Pods (of `labels`, in `namespaces` or all), nodes and their Events."""
    found = []
    for namespace in namespaces or (None,):
        found.append(Collection("Job", "batch/v1", "jobs", namespace, labels))
        found.append(Collection("Pod", "v1", "pods", namespace, labels))
    if with_nodes:
        found.append(Collection(_NODE, "v1", "nodes"))
        found.append(Collection(_EVENT, "v1", "events", fields="involvedObject.kind=Node"))
    return found


@dataclass(slots=True)
class _Batch:
    """Result of a batch: `events` and `notes` to send, and the state changes after they have arrived."""

    events: list[JobCompletion] = field(default_factory=list)
    notes: list[Object] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    forget: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is watched.

    Attributes:
        cluster: the name of the cluster in events.
        following: the collections to watch.
        path: the state file.
    """

    cluster: str
    following: Sequence[Collection]
    path: Path


class Watcher:
    """Watches collections and sends an event for each finished Job and Pod.

    Args:
        api: the cluster.
        options: what is watched.
        sender: sends job completions.
        send_nodes: sends changed Nodes and their Events, which are dropped on failure; None: they are not sent.
        evidence: completes a failed pod's event.
        node_states: the current states of the nodes; updated by the watcher.
    """

    def __init__(
        self,
        api: Api,
        options: WatchOptions,
        sender: Sender,
        send_nodes: Callable[[Sequence[Object]], None] | None,
        evidence: EvidenceCollector,
        node_states: NodeStates,
        clock: Clock,
        metrics: WatcherMetrics,
    ) -> None:
        self._api = api
        self._cluster = options.cluster
        self._following = tuple(options.following)
        self._sender = sender
        self._send_nodes = send_nodes
        self._evidence = evidence
        self._nodes = node_states
        self._path = options.path
        self._clock = clock
        self._metrics = metrics
        self._state = states.load(options.path, options.cluster)
        self._saved_at = float("-inf")
        self._listing: dict[str, set[str]] = {}
        self._waiting: queue.Queue[Observation] = queue.Queue(WAITING_MOST)
        self._nodes_listed = threading.Event()
        self._error: FaultlineError | None = None  # that ended the thread of a collection
        if not any(of.kind == _NODE for of in self._following):
            self._nodes_listed.set()

    @property
    def state(self) -> State:
        """The state, as saved or about to be saved."""
        return self._state

    def run(self, stop: ShutdownFlag) -> None:
        """Watch until `stop` is set.

        Raises:
            ConfigurationError: the state file can't be written.
            FaultlineError: a collection can't be watched any more; a new start continues at the saved state.
        """
        known = {of.name for of in self._following}
        self._state.running = {uid: one for uid, one in self._state.running.items() if one.of in known}
        for of in self._following:
            threading.Thread(target=self._follow, args=(of, stop), name=of.name, daemon=True).start()
        while not stop.is_set():
            if self._error is not None:
                raise self._error
            batch = self._next()
            if batch and not self.handle(batch, stop):
                return  # the saved state is the one before the batch, which is observed again
        self._save()

    def handle(self, batch: Sequence[Observation], stop: ShutdownFlag) -> bool:
        """Process observations; returns after the events have arrived and the state is saved, or `stop` is set.

        Returns:
            False if `stop` was set before the events arrived: then the state is no longer to be saved.

        Raises:
            ConfigurationError: the state file can't be written.
        """
        if (found := self._understood(batch, stop)) is None:
            return False
        if found.events and not self._send_events(found.events, stop):
            return False
        self._note(found.notes)
        for event in found.events:
            self._metrics.ends.labels(event.key().split(":")[1], event.status.value).inc()
        self._state.remember(event.key() for event in found.events)
        for event_id in found.forget:
            self._state.sent_ids.pop(event_id, None)
        self._state.versions.update(found.versions)
        if found.events or self._clock.monotonic() - self._saved_at >= SAVE_EVERY_S:
            self._save()
        return True

    def _save(self) -> None:
        now = self._clock.now()
        states.save(self._path, self._state, now)
        self._saved_at = self._clock.monotonic()
        self._metrics.saved.set(now.timestamp())

    def _follow(self, of: Collection, stop: ShutdownFlag) -> None:
        """Watch a collection; an unexpected error ends the whole watcher, which would else miss this one silently."""
        try:
            self._observe(of, stop)
        except Exception as error:
            log.exception("%s can't be watched any more", of.name)
            self._error = FaultlineError(f"{of.name} can't be watched any more: {type(error).__name__}")

    def _observe(self, of: Collection, stop: ShutdownFlag) -> None:
        # Nodes are listed again at each start: their current state matters, and the list is short.
        version = None if of.kind == _NODE else self._state.versions.get(of.name)
        if of.kind != _NODE:
            self._nodes_listed.wait(NODES_FIRST_S)
        for seen in follow(self._api, of, version, stop):
            self._metrics.last_message.labels(of.name).set(self._clock.now().timestamp())
            while not stop.is_set():
                try:
                    self._waiting.put(seen, timeout=IDLE_S)
                    break
                except queue.Full:
                    continue
            if of.kind == _NODE and seen.what == "all_listed":
                self._nodes_listed.set()

    def _next(self) -> list[Observation]:
        """Return the waiting observations, up to a batch; empty after a while without any."""
        found: list[Observation] = []
        try:
            found.append(self._waiting.get(timeout=IDLE_S))
            while len(found) < BATCH:
                found.append(self._waiting.get_nowait())
        except queue.Empty:
            pass
        return found

    def _understood(self, batch: Sequence[Observation], stop: ShutdownFlag) -> _Batch | None:
        """Interpret a batch; None if shutdown was requested before the cluster answered."""
        backoff = Backoff(longest=30.0)
        found = _Batch()
        sent_ids: set[str] = set()
        for seen in batch:
            while True:
                try:
                    self._one(seen, found, sent_ids)
                    break
                except UnreadableRecord as error:
                    self._metrics.unreadable.labels(seen.of.kind).inc()
                    name = (seen.object.get("metadata") or {}).get("name")
                    log.warning("the %s %r can't be read: %s", seen.of.kind, name, error.reason)
                    break
                except ClusterUnavailable as error:
                    pause = backoff.next()
                    log.warning("%s; trying again in %.1f s", error.detail, pause)
                    if stop.wait(pause):
                        return None
            if seen.version is not None:
                found.versions[seen.of.name] = seen.version
        return found

    def _one(self, seen: Observation, found: _Batch, sent_ids: set[str]) -> None:
        of = seen.of
        if seen.what == "list_begins":
            self._listing[of.name] = set()
        elif seen.what == "all_listed":
            self._vanished(of, found)
        elif seen.what == "bookmark":
            return
        elif of.kind == _NODE:
            self._node(seen, found)
        elif of.kind == _EVENT:
            if seen.what == "changed":
                found.notes.append(node_watch.observed(seen.object, self._cluster))
        else:
            self._end(seen, found, sent_ids)

    def _end(self, seen: Observation, found: _Batch, sent_ids: set[str]) -> None:
        kind, obj, deleted = seen.of.kind, seen.object, seen.what == "deleted"
        meta = kubernetes_meta.read_meta(obj)
        if kind == "Pod" and meta.owner is not None and meta.owner[0] in SERVICES:
            return
        self._track(seen, kind, meta, deleted=deleted)
        event = job_end_mapper.read(kind, obj, self._cluster, deleted=deleted)
        if kind == "Job":
            self._evidence.observe_job(obj)
        own_id = f"kubernetes:{kind}:{meta.uid}"
        if deleted:
            found.forget.append(own_id)
            if kind != "Pod":
                self._evidence.gone(kind, obj)
        elif isinstance(event, Skipped) and kind == "Pod":
            self._evidence.observe_pod(obj)
        if isinstance(event, Skipped) or event.key() in self._state.sent_ids or event.key() in sent_ids:
            return
        if kind == "Pod":
            event = self._evidence.under_its_job(event, obj)
        failed = event.status not in {Status.SUCCEEDED, Status.CANCELLED}
        if failed or (kind == "Pod" and event.status is Status.CANCELLED):
            event = self._completed(kind, event, obj)
            self._metrics.logs_missing.inc(sum(ref.missing is not None for ref in event.logs))
        if topology := self._nodes.topology(event.nodes):
            event = event.model_copy(update={"topology": topology})
        sent_ids.add(event.key())
        found.events.append(event)

    def _completed(self, kind: str, event: JobCompletion, obj: Object) -> JobCompletion:
        if kind == "Pod":
            return self._evidence.complete(event, obj)
        if kind == "Job":
            return self._evidence.complete_job(event, obj, self._cluster)
        return self._evidence.complete_owner(event)

    def _track(self, seen: Observation, kind: str, meta: kubernetes_meta.Meta, *, deleted: bool) -> None:
        """Record running objects, so that a missed end is noticed."""
        if meta.uid is None:
            return
        if seen.what == "listed":
            self._listing.setdefault(seen.of.name, set()).add(meta.uid)
        if deleted or job_end_mapper.ended(kind, seen.object) or job_end_mapper.has_owner(kind, meta):
            self._state.running.pop(meta.uid, None)
        else:
            self._state.running[meta.uid] = Running(kind, meta.namespace, meta.name, seen.of.name)

    def _vanished(self, of: Collection, found: _Batch) -> None:
        there = self._listing.pop(of.name, set())
        gone = {uid: one for uid, one in self._state.running.items() if one.of == of.name and uid not in there}
        now = self._clock.now()
        since = (self._state.at or now).isoformat()
        for uid, one in gone.items():
            log.warning("%s ended or was deleted while the watcher was down; its outcome is not known", one.full_name)
            self._metrics.vanished.labels(one.kind).inc()
            event = job_end_mapper.vanished(
                one.kind, one.namespace, one.name, uid, self._cluster, since=since, now=now.isoformat()
            )
            del self._state.running[uid]
            if event.key() not in self._state.sent_ids:
                found.events.append(event)

    def _node(self, seen: Observation, found: _Batch) -> None:
        now = self._clock.now()
        if seen.what == "deleted":
            name = field_reading.text(field_reading.mapping(seen.object, "metadata"), "name")
            if name is not None:
                self._nodes.gone(name, now)
                found.notes.append(node_watch.removed(name, self._cluster, now))
            return
        before, after = self._nodes.put(seen.object, now)
        known = () if before is None else before.problems
        if after is not None and after.problems != known:
            found.notes.append(node_watch.observed(seen.object, self._cluster))

    def _send_events(self, events: Sequence[JobCompletion], stop: ShutdownFlag) -> bool:
        """Send until the events have arrived; False if shutdown was requested before."""
        backoff = Backoff(longest=30.0)
        left: list[Sequence[JobCompletion]] = [events]
        while left:
            try:
                self._sender.send(left[0])
                left.pop(0)
            except TooLarge as error:
                left[:1] = self._smaller(left[0], error.detail)
            except (Unavailable, ConfigurationError) as error:
                pause = backoff.next() if isinstance(error, Unavailable) else REFUSED_PAUSE_S
                log.warning("%s; %d ends are not sent yet, trying again in %.1f s", error.detail, len(events), pause)
                if stop.wait(pause):
                    return False
        return True

    def _smaller(self, events: Sequence[JobCompletion], why: str) -> list[Sequence[JobCompletion]]:
        """Return smaller pieces of a too large batch: single events, then without logs, then nothing."""
        if len(events) > 1:
            return [[one] for one in events]
        [event] = events
        if (cut := without_logs(event)) != event:
            log.warning("%s; %s is sent without its logs", why, event.key())
            return [[cut]]
        log.error("%s; %s can't be sent", why, event.key())
        self._metrics.dropped.inc()
        return []

    def _note(self, notes: Sequence[Object]) -> None:
        if not notes or self._send_nodes is None:
            return
        try:
            self._send_nodes(notes)
        except (Unavailable, TooLarge, ConfigurationError) as error:
            self._metrics.node_events_dropped.inc(len(notes))
            log.warning("%s; %d node events were dropped", error.detail, len(notes))
        else:
            self._metrics.node_events.inc(len(notes))


def without_logs(event: JobCompletion) -> JobCompletion:
    """Return the event without its possibly long fields."""
    cut: dict[str, Any] = {"tail": None, "missing": "left out: the event was too large"}
    logs = tuple(ref.model_copy(update=cut) for ref in event.logs)
    short = {name: redact(getattr(event, name) or "")[:SHORT] or None for name in ("message", "command")}
    return event.model_copy(update={"logs": logs, "node_events": (), **short})
