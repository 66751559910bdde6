"""Terminations of a pod's containers: `initContainerStatuses` and `containerStatuses` of a pod's status."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from classifiers.contracts import NotDiagnostic
from classifiers.diagnostic_files.torchrun_error import read_error_file
from service.formats import field_reading
from service.times import MAX_TIME

_MESSAGE_CHARS = 4096  # as much as the kubelet keeps of a termination message


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """The termination of one container. `earlier`: it belongs to the run before the last restart."""

    name: str
    init: bool
    restarts: int
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    earlier: bool = False
    waiting: str | None = None
    waiting_message: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have ended and was not started again."""
        return self.exit_code is not None and not self.earlier


def read(status: Mapping[str, Any]) -> list[ContainerEnd]:
    """Return all containers, init containers first.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    found = []
    for key, init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for index, entry in enumerate(field_reading.mappings(status, key, "status.")):
            found.append(_container(entry, f"status.{key}[{index}].", init=init))
    return found


def _container(entry: Mapping[str, Any], within: str, *, init: bool) -> ContainerEnd:
    state = field_reading.mapping(entry, "state", within)
    terminated, place, earlier = field_reading.mapping(state, "terminated", f"{within}state."), "state", False
    running = field_reading.mapping(state, "running", f"{within}state.")
    if not terminated and not running:  # a container that runs again has overcome its earlier end
        last = field_reading.mapping(entry, "lastState", within)
        terminated, place, earlier = field_reading.mapping(last, "terminated", f"{within}lastState."), "lastState", True
    inner = f"{within}{place}.terminated."
    waiting = field_reading.mapping(state, "waiting", f"{within}state.")
    code = terminated.get("exitCode")
    if terminated and (not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= 255):  # noqa: PLR2004
        raise field_reading.unreadable(f"{inner}exitCode", "an integer 0 to 255", code)
    return ContainerEnd(
        name=field_reading.text(entry, "name", within) or "",
        init=init,
        restarts=field_reading.whole(entry, "restartCount", within) or 0,
        exit_code=code,
        signal=field_reading.whole(terminated, "signal", inner) or None,
        reason=field_reading.text(terminated, "reason", inner),
        message=field_reading.text(terminated, "message", inner),
        started_at=field_reading.instant(terminated, "startedAt", inner)
        or field_reading.instant(running, "startedAt", f"{within}state.running."),
        ended_at=field_reading.instant(terminated, "finishedAt", inner),
        earlier=earlier and bool(terminated),
        waiting=field_reading.text(waiting, "reason", f"{within}state.waiting."),
        waiting_message=field_reading.text(waiting, "message", f"{within}state.waiting."),
    )


def first_failed(containers: Iterable[ContainerEnd]) -> ContainerEnd | None:
    """Return the container that failed first, ignoring sidecars that were stopped at the end."""
    failed = [one for one in containers if one.exit_code]
    return min(failed, key=lambda one: (one.ended_at or MAX_TIME, not one.init), default=None)


def started_at(containers: Iterable[ContainerEnd]) -> datetime | None:
    """Return the start of the first container; None if unknown."""
    return min((one.started_at for one in containers if one.started_at is not None), default=None)


def words(texts: Iterable[str | None], containers: Iterable[ContainerEnd]) -> str | None:
    """Join the distinct messages of the pod and its containers, in that order."""
    parts = [part for part in texts if part]
    for one in containers:
        parts += [
            f"{one.name}: {text}" for text in (one.message if one.exit_code else None, one.waiting_message) if text
        ]
    return "\n".join(dict.fromkeys(parts))[: 2 * _MESSAGE_CHARS] or None


def logs(containers: Iterable[ContainerEnd], *, rank: int | None, node: str | None) -> list[dict[str, Any]]:
    """Return termination messages that hold a log (FallbackToLogsOnError) or torchelastic's error file."""
    found = []
    for one in containers:
        tail = _as_log(one.message) if one.exit_code else None
        if tail is not None:
            found.append({"rank": rank, "node": node, "stream": "stderr", "tail": tail})
    return found


def _as_log(message: str | None) -> str | None:
    if message is None:
        return None
    if message.startswith("{"):
        with suppress(NotDiagnostic):
            return read_error_file(message)[0].rstrip("\n")
    return message if "\n" in message.strip() else None
