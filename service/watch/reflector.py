"""Follows one collection of a cluster without end: lists it once, then watches from the version of the list.

See https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes for the protocol.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from service.backoff import Backoff
from service.kubernetes.errors import AnswerTooLarge, ClusterUnavailable, RequestRefused, VersionExpired
from service.kubernetes.paths import Object, collection
from service.shutdown import ShutdownFlag

log = logging.getLogger(__name__)

PAGE = 200  # several collections are listed at the same time; a node or pod has 10 to 40 KB
# The server ends a watch after this time, so that a dead connection is noticed and bookmarks are received.
WATCH_S = 300
SILENCE_S = WATCH_S + 30.0
REFUSED_PAUSE_S = 60.0
OPTIONAL_PAUSE_S = 600.0
RESUME_PAUSE_S = 0.1

ObservationKind = Literal["list_begins", "listed", "all_listed", "changed", "deleted", "bookmark"]


class Api(Protocol):
    """The methods of the cluster client that are used here (service.kubernetes.api.KubernetesApi)."""

    def get(self, path: str, query: dict[str, Any] | None = None) -> Object:
        """See `KubernetesApi`."""
        ...

    def watch(self, path: str, query: dict[str, Any], *, silence_s: float) -> Iterator[Object]:
        """See `KubernetesApi`."""
        ...


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one kind, in one namespace or (None) in all, with a label selector or (None) without.

    `fields` is a field selector. `optional`: not every cluster has this kind, and not every account may read it.
    """

    kind: str
    group: str
    plural: str
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    optional: bool = False

    @property
    def name(self) -> str:
        """The name of the collection in the state file; a different selection is a different collection."""
        parts = (self.plural, self.namespace or "*", self.labels or "", self.fields or "")
        return "|".join(parts).rstrip("|")

    @property
    def path(self) -> str:
        """The API path of the collection."""
        return collection(self.group, self.plural, self.namespace)


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation. `version`: continue from here after processing it (None: within a list).

    all_listed: the list is complete; previously running objects that it does not contain no longer exist.
    """

    what: ObservationKind
    of: Collection
    object: Object
    version: str | None = None


def follow(
    api: Api, of: Collection, version: str | None, stop: ShutdownFlag, backoff: Backoff | None = None
) -> Iterator[Observation]:
    """Yield all observations of a collection, from `version` or (None) from a complete list.

    Continues whatever the cluster does: lists again if the history has expired (410), and retries after failures with
    increasing pauses. Ends when `stop` is set.
    """
    backoff = backoff or Backoff(longest=30.0)
    while not stop.is_set():
        try:
            if version is None:
                for seen in _listed(api, of):
                    version = seen.version
                    yield seen
                backoff.reset()
            for seen in _watched(api, of, str(version)):
                version = seen.version or version
                backoff.reset()
                yield seen
            stop.wait(RESUME_PAUSE_S)  # the server ended the watch, which it does regularly
        except VersionExpired:
            log.info(
                "%s: the cluster no longer knows what happened since %s; everything is listed again", of.name, version
            )
            version = None
            stop.wait(backoff.next())
        except ClusterUnavailable as error:
            pause = max(backoff.next(), error.retry_after_s or 0.0)
            log.warning("%s; trying again in %.1f s", error.detail, pause)
            stop.wait(pause)
        except RequestRefused as error:
            if of.optional:
                log.info("%s is not watched: %s", of.name, error.detail)
                stop.wait(OPTIONAL_PAUSE_S)
                continue
            log.error("%s; trying again in %.0f s", error.detail, REFUSED_PAUSE_S)  # noqa: TRY400 - said it all
            stop.wait(REFUSED_PAUSE_S)


def _listed(api: Api, of: Collection) -> Iterator[Observation]:
    """Yield a consistent list; at most one page is held in memory."""
    query: dict[str, Any] = {"limit": PAGE, "labelSelector": of.labels, "fieldSelector": of.fields}
    yield Observation("list_begins", of, {})
    while True:
        try:
            page = api.get(of.path, query)
        except AnswerTooLarge:
            if query["limit"] == 1:
                raise
            query["limit"] = max(1, query["limit"] // 8)
            continue
        for obj in page.get("items") or ():
            yield Observation("listed", of, _with_kind(obj, of))
        meta = page.get("metadata") or {}
        query["continue"] = meta.get("continue")
        if not query["continue"]:
            yield Observation("all_listed", of, {}, str(meta.get("resourceVersion") or ""))
            return


def _watched(api: Api, of: Collection, version: str) -> Iterator[Observation]:
    query = {
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": WATCH_S,
        "labelSelector": of.labels,
        "fieldSelector": of.fields,
    }
    for change in api.watch(of.path, query, silence_s=SILENCE_S):
        obj = change.get("object")
        if not isinstance(obj, dict):
            continue
        at = (obj.get("metadata") or {}).get("resourceVersion")
        what: ObservationKind = {"BOOKMARK": "bookmark", "DELETED": "deleted"}.get(str(change.get("type")), "changed")  # type: ignore[assignment]
        yield Observation(what, of, _with_kind(obj, of), at if isinstance(at, str) else None)


def _with_kind(obj: Object, of: Collection) -> Object:
    """Add kind and API version, which the entries of a list do not contain."""
    obj.setdefault("kind", of.kind)
    obj.setdefault("apiVersion", of.group)
    return obj
