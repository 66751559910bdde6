"""Reads the tails of a pod's logs, one stream for each failed container; an unreadable log is noted with its reason.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from service.contracts.event import LogRef
from service.errors import FaultlineError
from service.formats.kubernetes.containers import ContainerEnd
from service.kubernetes.errors import ClusterUnavailable, ObjectNotFound, RequestRefused
from service.kubernetes.paths import named

# Limits of the stored tail of one container, and of the bytes read to find it, since lines may be long.
TAIL_LINES = 5_000
TAIL_BYTES = 128 << 10
READ_BYTES = 16 << 20
WITHIN_S = 10.0
# Time during which an unresponsive kubelet is not queried again: a failed rack must not delay the others.
SILENT_S = 60.0
SILENT_MOST = 10_000
CONTAINERS_MOST = 8
_FORBIDDEN = 403


class Api(Protocol):
    """The methods of the cluster client that are used here (service.kubernetes.api.KubernetesApi)."""

    def text_tail(self, path: str, query: dict[str, Any], *, keep: int, read_at_most: int, within_s: float) -> str:
        """See `KubernetesApi`."""
        ...


class PodLogReader:
    """Reads log tails of pods.

    Args:
        api: the client of the cluster.
        silent: returns why the logs of a node are not requested (it does not answer), or None.
        monotonic: seconds of a monotonic clock.
    """

    def __init__(
        self, api: Api, silent: Callable[[str], str | None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._silent = silent
        self._monotonic = monotonic
        self._silent_until: dict[str, float] = {}

    def of(self, pod: Mapping[str, Any], containers: Sequence[ContainerEnd], rank: int | None) -> tuple[LogRef, ...]:
        """Return one entry for each failed container, in order of failure; if none reports a failure, for all."""
        meta, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName")
        failed = sorted((one for one in containers if one.exit_code), key=lambda one: (one.ended_at is None, one.init))
        wanted = failed or list(containers) or [ContainerEnd(name, init=False, restarts=0) for name in _names(pod)]
        place = named("v1", "pods", meta.get("namespace") or "default", meta["name"]) + "/log"
        found = []
        for one in wanted[:CONTAINERS_MOST]:
            why = "it never ran on a node" if node is None else self._why_not(node)
            tail, missing = (None, why) if node is None or why is not None else self._tail(place, one, node)
            found.append(LogRef(rank=rank, node=node, stream=one.name or None, tail=tail, missing=missing))
        return tuple(found)

    def _why_not(self, node: str) -> str | None:
        if self._silent_until.get(node, 0.0) > self._monotonic():
            return f"the kubelet of {node} gave no logs a moment ago"
        return self._silent(node)

    def _tail(self, place: str, one: ContainerEnd, node: str) -> tuple[str | None, str | None]:
        query = {"container": one.name or None, "tailLines": TAIL_LINES, "previous": "true" if one.earlier else None}
        try:
            text = self._api.text_tail(place, query, keep=TAIL_BYTES, read_at_most=READ_BYTES, within_s=WITHIN_S)
        except ObjectNotFound:
            return None, "the pod is deleted, and its logs with it"
        except RequestRefused as error:
            if error.status == _FORBIDDEN:
                return None, "the watcher may not read logs (pods/log)"
            return None, error.detail
        except ClusterUnavailable as error:
            if len(self._silent_until) >= SILENT_MOST:
                self._silent_until.clear()
            self._silent_until[node] = self._monotonic() + SILENT_S
            return None, f"the node's kubelet gave no logs: {error.detail}"
        except FaultlineError as error:
            return None, error.detail
        return (text, None) if text else (None, "the container wrote nothing, or its log is gone")


def _names(pod: Mapping[str, Any]) -> list[str]:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return [str(one.get("name") or "") for one in containers if isinstance(one, dict)]
