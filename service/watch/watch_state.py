"""The persistent state of the watcher: positions, objects that were running, and ids of events already sent.

One JSON file, written under another name, synced and renamed: after a crash it is either the old or the new file.
"""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from service.contracts.kubernetes_name import KubernetesName
from service.errors import ConfigurationError

log = logging.getLogger(__name__)

FORMAT = "faultline-watch/1"
# Limit for finished objects that still exist; older ones are sent again after a new list, which is harmless.
SENT_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Running:
    """A Job, or a pod without a controller, that had not ended. `of`: the collection that it was found in."""

    kind: str
    namespace: str
    name: str
    of: str

    @property
    def full_name(self) -> KubernetesName:
        """The name of the object."""
        return KubernetesName(self.namespace, self.kind, self.name)


@dataclass(slots=True)
class State:
    """The content of one state file.

    Attributes:
        cluster: the name of the cluster.
        versions: the position (resourceVersion) reached in each collection, by the collection's name.
        running: objects that had not ended, by uid.
        sent_ids: ids of sent events whose objects may still exist, oldest first.
        at: time of the last write.
    """

    cluster: str
    versions: dict[str, str] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    sent_ids: dict[str, None] = field(default_factory=dict)
    at: datetime | None = None

    def remember(self, event_ids: Iterable[str]) -> None:
        """Record that these events have been delivered."""
        for event_id in event_ids:
            self.sent_ids[event_id] = None
        while len(self.sent_ids) > SENT_MOST:
            del self.sent_ids[next(iter(self.sent_ids))]


def load(path: Path, cluster: str) -> State:
    """Load the state from a file; a new state if the file is missing or unusable (an unusable file is kept aside).

    Raises:
        ConfigurationError: the file belongs to another cluster, or can't be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return State(cluster)
    except OSError as error:
        raise ConfigurationError(f"{path}: the watcher's state can't be read: {error.strerror}") from None
    try:
        state = _decoded(orjson.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        aside = path.with_suffix(path.suffix + ".unusable")
        path.replace(aside)
        log.warning(
            "%s is not the state of this watcher (%s); it was moved to %s, and everything is listed again",
            path,
            error,
            aside,
        )
        return State(cluster)
    if state.cluster != cluster:
        raise ConfigurationError(f"{path}: expected the state of cluster {cluster}, got that of {state.cluster}")
    return state


def save(path: Path, state: State, now: datetime) -> None:
    """Write `state` to the file; it is on disk when this returns.

    Raises:
        ConfigurationError: the file can't be written; it is unchanged.
    """
    state.at = now
    content = orjson.dumps(
        {
            "format": FORMAT,
            "cluster": state.cluster,
            "at": now.isoformat(),
            "versions": state.versions,
            "running": {uid: [one.kind, one.namespace, one.name, one.of] for uid, one in state.running.items()},
            "sent": list(state.sent_ids),
        }
    )
    fresh = path.with_suffix(path.suffix + ".tmp")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigurationError(f"{path}: the watcher's state can't be written: {error.strerror}") from None


def _decoded(found: Any) -> State:
    if found["format"] != FORMAT:
        raise ValueError(f"format {found['format']!r}, expected {FORMAT!r}")
    versions, running = found["versions"], found["running"]
    sent_ids = found["sent"] if "sent" in found else found["told"]  # as earlier versions wrote it
    if not all(isinstance(one, str) for one in (found["cluster"], *versions.values(), *sent_ids)):
        raise TypeError("a string is missing")
    return State(
        cluster=found["cluster"],
        versions=dict(versions),
        running={uid: Running(*map(str, one)) for uid, one in running.items()},
        sent_ids=dict.fromkeys(sent_ids),
        at=datetime.fromisoformat(found["at"]).astimezone(UTC),
    )
