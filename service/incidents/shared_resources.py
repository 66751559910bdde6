"""The shared resources of a failure: node, rack, switch, file system, storage host, registry, image, fingerprint."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from classifiers.contracts import Verdict
from classifiers.node_names import short_name
from service.contracts.event import JobCompletion
from service.incidents.records import IncidentKind
from service.nodes.records import NodePlace

# If many jobs share several kinds, the first one names the incident: the one closest to the needed repair.
RESOURCE_ORDER: tuple[IncidentKind, ...] = (
    *("storage_host", "file_system", "registry", "image", "node", "switch", "rack", "fingerprint"),
)
_PLACES: tuple[IncidentKind, ...] = ("switch", "rack")
_LINE = 2_000  # characters of a line that are searched
_LINES = 8
_NAME = 150  # characters
_PLACED_NODES = 256  # more nodes than that do not share one switch; their places are not looked up


@dataclass(frozen=True, slots=True)
class SharedResource:
    """One shared resource on one cluster."""

    kind: IncidentKind
    value: str
    cluster: str

    @property
    def key(self) -> str:
        """The unique key of the resource."""
        return f"{self.cluster}|{self.kind}|{self.value}"[:300]

    @property
    def title(self) -> str:
        """The title of an incident over this resource."""
        return _data().titles[self.kind].format(value=self.value)


@dataclass(frozen=True, slots=True)
class _Resource:
    kind: IncidentKind
    among: tuple[str, ...]
    pattern: re.Pattern[str]
    mount: bool


@dataclass(frozen=True, slots=True)
class _Data:
    resources: tuple[_Resource, ...]
    below: frozenset[str]
    local: frozenset[str]
    titles: dict[str, str]


@cache
def _data() -> _Data:
    raw = tomllib.loads(files("service.incidents").joinpath("shared_resources.toml").read_text(encoding="utf-8"))
    resources = tuple(
        _Resource(row["kind"], tuple(row["among"]), re.compile(row["pattern"]), row.get("mount", False))
        for row in raw["resource"]
    )
    return _Data(resources, frozenset(raw["mounts"]["below"]), frozenset(raw["mounts"]["local"]), raw["titles"])


def nodes_to_place(event: JobCompletion, verdict: Verdict) -> Sequence[str]:
    """The nodes whose stored places `shared_resources_of` needs: none if the event has a topology of its own."""
    if event.topology or not _counts(event, verdict):
        return ()
    node = _node(event, verdict)
    if node is not None:
        return (node,)
    return event.nodes if len(event.nodes) <= _PLACED_NODES else ()


def shared_resources_of(
    event: JobCompletion, verdict: Verdict, places: Mapping[str, NodePlace] | None = None
) -> tuple[SharedResource, ...]:
    """The shared resources of a failure, in `RESOURCE_ORDER`; none for user-side failures and preempted jobs.

    Args:
        event: the end of the job.
        verdict: its verdict.
        places: stored places by node; they count if the event has no topology.
    """
    if not _counts(event, verdict):
        return ()
    found: dict[tuple[IncidentKind, str], None] = {}
    for kind, value in _named(verdict):
        found.setdefault((kind, value))
    if event.image and any(kind == "registry" for kind, _ in found):
        found.setdefault(("image", event.image[:_NAME]))
    node = _node(event, verdict)
    if node is not None:
        found.setdefault(("node", node))
    for place in _PLACES:
        named = _place(event, node, place, places or {})
        if named is not None:
            found.setdefault((place, named))
    found.setdefault(("fingerprint", verdict.fingerprint[:_NAME]))
    ordered = sorted(found, key=lambda one: RESOURCE_ORDER.index(one[0]))
    return tuple(SharedResource(kind, value, event.cluster) for kind, value in ordered)


def named_by_person(kind: IncidentKind, value: str, cluster: str) -> SharedResource:
    """The resource that a person names, written as those of failures are."""
    name = value.strip()
    if kind == "file_system":
        name = name.rstrip("/") or name
    elif kind in {"storage_host", "registry"}:
        name = name.rstrip(".,:;").lower()
    return SharedResource(kind, name, cluster)


def storm_resource(resources: Sequence[SharedResource]) -> str:
    """The resource by which the retry-storm limit counts; "" if only the fingerprint is shared."""
    first = resources[0] if resources else None
    return "" if first is None or first.kind == "fingerprint" else f"{first.kind}:{first.value}"


def _named(verdict: Verdict) -> Iterator[tuple[IncidentKind, str]]:
    lines = [line.text for line in verdict.evidence if line.role == "initiating" or line.stream == "node"][:_LINES]
    data = _data()
    for text in lines:
        line = text[:_LINE]
        lowered = line.lower()
        for one in data.resources:
            if not any(word in lowered for word in one.among):
                continue
            for match in one.pattern.finditer(line):
                value = _mount(match[1]) if one.mount else match[1].rstrip(".,:;").lower()
                if value is not None:
                    yield one.kind, value[:_NAME]
                    break


def _mount(path: str) -> str | None:
    """The mount point of a path, judged by its name; None for a node's own file system."""
    data = _data()
    parts = [part for part in path.split("/") if part]
    if not parts or parts[0].lower() in data.local:
        return None
    depth = 2 if parts[0].lower() in data.below and len(parts) > 1 else 1
    return "/" + "/".join(parts[:depth])


def _node(event: JobCompletion, verdict: Verdict) -> str | None:
    named = verdict.suspect.node if verdict.suspect is not None else None
    if named is not None:
        wanted = short_name(named)
        return next((node for node in event.nodes if short_name(node) == wanted), None)
    return event.nodes[0] if len(event.nodes) == 1 else None


def _counts(event: JobCompletion, verdict: Verdict) -> bool:
    return verdict.side != "user" and event.status not in {"preempted", "cancelled"}


def _place(event: JobCompletion, node: str | None, place: IncidentKind, places: Mapping[str, NodePlace]) -> str | None:
    """The rack or switch of the suspected node, or the one that all nodes of the job share."""
    nodes = [node] if node is not None else event.nodes
    if event.topology:
        named = {_name(event.topology.get(one, {}).get(place)) for one in nodes}
    else:
        named = {_name(getattr(places.get(one), place, None)) for one in nodes}
    return cast("str", named.pop()) if len(named) == 1 and None not in named else None


def _name(value: object) -> str | None:
    return str(value)[:_NAME] if isinstance(value, str | int) and str(value) else None
