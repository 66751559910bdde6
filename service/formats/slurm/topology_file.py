"""Where nodes are: Slurm's `topology.yaml` (from 25.05 on), which may hold several topologies.

Each is a tree (`tree.switches`, whose leaves name `nodes`), blocks (`block.blocks`) or flat. A partition names the one
that it uses; without a name it is the first with `cluster_default: true`. The places of that one count first. What it
does not name comes from the other ones in their order, so that a node can have a switch and a block.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from classifiers.redaction import redact
from service.errors import UnreadableRecord
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.slurm.nodes import expand_nodes
from service.nodes.records import NODE_NAME_MOST, PLACE_NAME_MOST, KnownPlace, NodePlace

NODES_MOST: Final = 100_000  # in all topologies of a file together, counted as often as they are named
_KEY_SHOWN: Final = 40  # characters of a key in an error
_DEEPEST: Final = 10  # levels of lists and mappings; the format has 6
# Comments and the line that starts a document may come before the first topology, whose first key is its name.
_IS_IT = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*[ \t]*-\s+[\"']?topology[\"']?\s*:", re.ASCII)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "yes", "on", "1"})
# The libyaml of PyYAML where it is installed. Both loaders only deliver events here: no object is made of a tag.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class _Found:
    """A part of the document: text, a list or a mapping; with the line and the path of keys for errors."""

    value: "str | list[_Found] | dict[str, _Found]"
    line: int
    path: str

    def wrong(self, expected: str) -> UnreadableRecord:
        """The error for this part."""
        got = self.value if isinstance(self.value, str) else type(self.value).__name__
        return _wrong(self.path, self.line, expected, got)


def is_it(text: str) -> bool:
    """Return whether a text begins as such a file does."""
    return _IS_IT.match(text) is not None


def read(text: str, cluster: str | None) -> tuple[KnownPlace, ...] | Skipped:
    """Return the places that a file names; `Skipped` if it names none.

    Raises:
        UnreadableRecord: it is no YAML or of another form, a list of nodes can't be read, it names more than 100,000
            nodes, or no cluster is known. The error has the line and the keys that lead to it.
    """
    topologies = [_mapping(one) for one in _items(_document(text))]
    topologies.sort(key=lambda one: not _is_default(one))  # stable: the others stay in their order
    known: dict[str, NodePlace] = {}
    named = 0
    for topology in topologies:
        for kind, group, nodes in _groups(topology):
            names = _expanded(nodes)
            named += len(names)
            if named > NODES_MOST:
                raise nodes.wrong(f"at most {NODES_MOST} nodes in the file")
            place = NodePlace(**{kind: redact(group)[:PLACE_NAME_MOST]})
            for name in names:
                known[name] = known[name].with_others_of(place) if name in known else place
    if not known:
        return Skipped("Slurm: a topology.yaml that names no place of a node")
    named_cluster = field_reading.cluster_name(None, cluster)
    return tuple(KnownPlace(named_cluster, node, place) for node, place in known.items())


def _groups(topology: Mapping[str, _Found]) -> Iterator[tuple[str, str, _Found]]:
    """The switches and blocks that nodes are in: kind, name and list of nodes. A switch of switches has none."""
    for kind, plugin, parts in (("switch", "tree", "switches"), ("block", "block", "blocks")):
        if plugin not in topology:
            continue
        for one in _items(_mapping(topology[plugin]).get(parts)):
            group = _mapping(one)
            if kind not in group:
                raise one.wrong(f"the key {kind}")
            name = _text(group[kind])
            if "nodes" in group and _is_given(group["nodes"]):
                yield kind, name, group["nodes"]


def _expanded(nodes: _Found) -> tuple[str, ...]:
    """The names of a list of nodes: a host-list expression, or several."""
    several = nodes.value if isinstance(nodes.value, list) else [nodes]
    try:
        names = expand_nodes(",".join(_text(one) for one in several), "nodes")
    except UnreadableRecord as error:
        if error.errors[0].field != "nodes":
            raise
        raise nodes.wrong(error.errors[0].expected) from None
    return tuple(name for name in names if 0 < len(name) <= NODE_NAME_MOST)


def _is_default(topology: Mapping[str, _Found]) -> bool:
    default = topology.get("cluster_default")
    return default is not None and _is_given(default) and _text(default).lower() in _TRUE


def _is_given(found: _Found) -> bool:
    return not (isinstance(found.value, str) and found.value in _NULL)


def _text(found: _Found) -> str:
    if not isinstance(found.value, str) or found.value in _NULL:
        raise found.wrong("a text")
    return found.value


def _mapping(found: _Found) -> Mapping[str, _Found]:
    if not isinstance(found.value, dict):
        raise found.wrong("a mapping")
    return found.value


def _items(found: _Found | None) -> Sequence[_Found]:
    if found is None or not _is_given(found):
        return ()
    if not isinstance(found.value, list):
        raise found.wrong("a list")
    return found.value


def _document(text: str) -> _Found:
    """The one document of a text. Values stay texts, so that a node `007` keeps its name."""
    events = yaml.parse(text, Loader=_LOADER)
    try:
        while isinstance(event := next(events), (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            pass
        found = _part(events, event, "", 1)
        next(events)  # the end of the document
        if isinstance(event := next(events), yaml.DocumentStartEvent):
            raise _wrong("", _line(event), "one document")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "characters that YAML allows"
        raise _wrong("", 1 if mark is None else mark.line + 1, f"YAML: {problem}") from None
    finally:
        events.close()
    return found


def _part(events: Iterator[Any], event: Any, path: str, depth: int) -> _Found:
    """The part that begins with an event of the parser."""
    line = _line(event)
    if isinstance(event, yaml.ScalarEvent):
        return _Found(event.value, line, path)
    if isinstance(event, yaml.AliasEvent):  # a few of them can stand for millions of entries
        raise _wrong(path, line, "no alias")
    if depth > _DEEPEST:
        raise _wrong(path, line, f"at most {_DEEPEST} levels")
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[_Found] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_part(events, event, f"{path}[{len(items)}]", depth + 1))
        return _Found(items, line, path)
    found: dict[str, _Found] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent) or event.value in found:
            raise _wrong(path, _line(event), "keys that are texts and differ")
        key = event.value
        found[key] = _part(events, next(events), f"{path}.{key[:_KEY_SHOWN]}", depth + 1)
    return _Found(found, line, path)


def _line(event: Any) -> int:
    """The line of an event, from 1."""
    return int(event.start_mark.line) + 1


def _wrong(path: str, line: int, expected: str, got: str | None = None) -> UnreadableRecord:
    where = f"topology.yaml, line {line}"
    return field_reading.unreadable(f"{where}: {redact(path)}" if path else where, expected, got)
