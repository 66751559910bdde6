"""Harmless node events and neutral log lines: the entries of `classifiers/data/noise`.

An entry of `node_events/<family>.toml` is what an operator would ignore, for a reason that the events themselves
show. Fields of a file: `version`, `use`, `source`, `basis`. Fields of an entry (`[[entry]]`):

    id        "<family>.<name>", unique
    reason    why it is harmless, one of `REASONS`
    where     "own" (a node of the job, default), "other" (a node that the job does not use), "other_job" (a node of
              another job) or "switch" (a switch, a rack or a server)
    when      "any" (default), "before" the job, "after" it, "early" (in the first part of a long run, which went on)
    distance  time between the events and the job, as "2h..30h"; only with "before" and "after"
    events    in order: `text` (a template of classifiers/composition/synthetic_values.py), `source`, `after` (time
              since the event before it, as "5m..40m")
    source, use, basis, reason, when   as in the file, which holds the default
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, get_args

Reason = Literal[
    "corrected",
    "recovered",
    "repaired_before",
    "unused_device",
    "other_node",
    "other_job",
    "redundant_part",
    "informational",
    "expected_change",
    "long_before_progress",
]
Use = Literal["fit", "measure"]
Where = Literal["own", "other", "other_job", "switch"]
When = Literal["any", "before", "after", "early"]
LineRole = Literal["banner", "progress", "survived", "cascade"]
Span = tuple[float, float]

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
VERSION: Final = 1
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN: Final = re.compile(r"(\d+)([smhd])\.\.(\d+)([smhd])")
_DEFAULT_AFTER: Final = "0s..2s"
_DEFAULT_DISTANCE: Final = {"before": "1h..30h", "after": "1m..3h"}
_FILE_FIELDS: Final = frozenset({"version", "use", "source", "basis", "reason", "when", "entry"})
_ENTRY_FIELDS: Final = frozenset({"id", "reason", "where", "when", "distance", "events", "source", "use", "basis"})
_EVENT_FIELDS: Final = frozenset({"text", "source", "after"})


@dataclass(frozen=True, slots=True)
class NoiseEvent:
    """One event of an entry; `after`: seconds since the event before it, least and most."""

    text: str
    source: str
    after: Span


@dataclass(frozen=True, slots=True)
class NoiseEntry:
    """A harmless sequence of node events; see the module for the fields. `distance` is in seconds."""

    id: str
    family: str
    reason: Reason
    where: Where
    when: When
    use: Use
    basis: str
    distance: Span
    events: tuple[NoiseEvent, ...]

    @property
    def source(self) -> str:
        """The source of its first event."""
        return self.events[0].source


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Neutral lines of a log: `texts` are templates, each of one or more lines that belong together."""

    id: str
    role: LineRole
    use: Use
    frameworks: tuple[str, ...]
    basis: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogLines:
    """The content of log_lines.toml; `stamps` are (time format, template) with their use, the others templates."""

    groups: tuple[LineGroup, ...]
    stamps: tuple[tuple[str, str, Use], ...]
    colours: tuple[tuple[str, Use], ...]
    bars: tuple[tuple[str, Use], ...]


@cache
def node_entries(use: Use | None = None) -> tuple[NoiseEntry, ...]:
    """Return the entries for one use, or all, ordered by file and position.

    Raises:
        ValueError: an entry does not follow the format; the message names file and entry.
    """
    if use is not None:
        return tuple(entry for entry in node_entries() if entry.use == use)
    folder = files("classifiers").joinpath("data", "noise", "node_events")
    entries: list[NoiseEntry] = []
    for file in sorted(folder.iterdir(), key=lambda path: path.name):
        if file.name.endswith(".toml"):
            family = file.name.removesuffix(".toml")
            entries += read_entries(tomllib.loads(file.read_text(encoding="utf-8")), family)
    known: set[str] = set()
    for entry in entries:
        _expect(entry.id not in known, entry.id, "id", "an id that is used once", entry.id)
        known.add(entry.id)
    return tuple(entries)


def read_entries(data: Mapping[str, Any], family: str) -> list[NoiseEntry]:
    """Return the entries of one file.

    Raises:
        ValueError: a field is missing, unknown or has an unexpected value.
    """
    _expect(data.get("version") == VERSION, family, "version", str(VERSION), data.get("version"))
    _only(data, _FILE_FIELDS, family)
    defaults = {name: value for name, value in data.items() if name not in {"version", "entry"}}
    return [_entry({**defaults, **raw}, family) for raw in data.get("entry", ())]


@cache
def log_lines() -> LogLines:
    """Return the content of log_lines.toml.

    Raises:
        ValueError: a group does not follow the format; the message names it.
    """
    place = "log_lines.toml"
    file = files("classifiers").joinpath("data", "noise", place)
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    _expect(data.get("version") == VERSION, place, "version", str(VERSION), data.get("version"))
    _only(data, frozenset({"version", "group", "stamp", "colour", "bar"}), place)
    return LogLines(
        groups=tuple(_group(raw) for raw in data["group"]),
        stamps=tuple((str(raw["format"]), str(raw["text"]), _use(raw, place)) for raw in data["stamp"]),
        colours=tuple((str(raw["text"]), _use(raw, place)) for raw in data["colour"]),
        bars=tuple((str(raw["text"]), _use(raw, place)) for raw in data["bar"]),
    )


def _entry(raw: Mapping[str, Any], family: str) -> NoiseEntry:
    place = f"{family}: {raw.get('id', '(no id)')}"
    _only(raw, _ENTRY_FIELDS, place)
    _expect(bool(re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", str(raw.get("id")))), place, "id", "group.name", raw.get("id"))
    _expect(raw.get("reason") in REASONS, place, "reason", ", ".join(REASONS), raw.get("reason"))
    where, when = raw.get("where", "own"), raw.get("when", "any")
    _expect(where in get_args(Where), place, "where", ", ".join(get_args(Where)), where)
    _expect(when in get_args(When), place, "when", ", ".join(get_args(When)), when)
    _expect(isinstance(raw.get("basis"), str), place, "basis", "a text", raw.get("basis"))
    listed = raw.get("events")
    _expect(isinstance(listed, list) and len(listed) > 0, place, "events", "a list of tables", listed)
    distance = raw.get("distance", _DEFAULT_DISTANCE.get(when, "0s..0s"))
    _expect("distance" not in raw or when in _DEFAULT_DISTANCE, place, "distance", "only before or after", distance)
    if raw["reason"] == "repaired_before":
        _expect(when == "before" and len(raw["events"]) > 1, place, "events", "fault and repair before the job", when)
    if raw["reason"] == "other_node":
        _expect(where != "own", place, "where", "another node", where)
    return NoiseEntry(
        id=raw["id"],
        family=family,
        reason=raw["reason"],
        where=where,
        when=when,
        use=_use(raw, place),
        basis=raw["basis"],
        distance=_span(distance, place),
        events=tuple(_event(event, raw.get("source"), place) for event in raw["events"]),
    )


def _event(raw: Mapping[str, Any], source: str | None, place: str) -> NoiseEvent:
    _only(raw, _EVENT_FIELDS, place)
    own = raw.get("source", source)
    _expect(isinstance(own, str), place, "source", "a text", own)
    _expect(isinstance(raw.get("text"), str) and raw["text"] != "", place, "text", "a text", raw.get("text"))
    return NoiseEvent(raw["text"], str(own), _span(raw.get("after", _DEFAULT_AFTER), place))


def _group(raw: Mapping[str, Any]) -> LineGroup:
    place = f"log_lines.toml: {raw.get('id', '(no id)')}"
    _only(raw, frozenset({"id", "role", "use", "frameworks", "basis", "texts"}), place)
    _expect(raw.get("role") in get_args(LineRole), place, "role", ", ".join(get_args(LineRole)), raw.get("role"))
    _expect(isinstance(raw.get("basis"), str), place, "basis", "a text", raw.get("basis"))
    return LineGroup(
        str(raw["id"]), raw["role"], _use(raw, place), tuple(raw["frameworks"]), raw["basis"], tuple(raw["texts"])
    )


def _use(raw: Mapping[str, Any], place: str) -> Use:
    use = raw.get("use")
    if use not in {"fit", "measure"}:
        raise ValueError(f"{place}: use: expected fit or measure, got {use!r}")
    return "fit" if use == "fit" else "measure"


def _span(text: str, place: str) -> Span:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"{place}: expected a span such as 5m..2h, got {text!r}")
    low, high = int(found[1]) * _UNITS[found[2]], int(found[3]) * _UNITS[found[4]]
    _expect(low <= high, place, "span", "the smaller time first", text)
    return float(low), float(high)


def _only(raw: Mapping[str, Any], fields: frozenset[str], place: str) -> None:
    unknown = sorted(set(raw) - fields)
    _expect(not unknown, place, "fields", ", ".join(sorted(fields)), unknown)


def _expect(holds: object, place: str, field: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"{place}: {field}: expected {expected}, got {got!r}")
