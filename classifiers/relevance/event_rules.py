"""What node events do to a job, read from event_rules.toml and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, get_args

from classifiers.relevance import entry_groups
from classifiers.relevance.entry_groups import program_errors

Object = Literal["gpu", "process", "port", "filesystem", "disk", "node", "service"]
Effect = Literal["ends", "stalls", "degrades", "changes", "follows"]
Disturbs = Literal["", "slows", "stalls"]
_FILE: Final = "event_rules.toml"
_KEYS: Final = frozenset(
    {
        "id",
        "title",
        "signatures",
        "object",
        "effect",
        "persists",
        "shared",
        "explains",
        "explains_named",
        "explains_older",
        "explains_newer",
        "explains_at_once",
        "until_repair",
        "leads_to",
        "before_logs",
        "status",
        "within_s",
        "source",
        "disturbs",
        "found_later",
    }
)
CHANGES: Final = "changes."
"""The family of the catalogue whose entries know changes of the platform, with its dot."""
ANY_CHANGE: Final = "changes.other"
"""Its entry of words that are telling only in a report of changes."""
NAMED_OBJECT: Final = "events.named-object"
"""The entry of general words of failure: such an event counts where the failure names what it names."""
MANY_AFFECTED: Final = "nodes.many-affected"
"""The entry of failures of several owners: such an event counts where it quotes the error of the job, and says nothing
else of that error."""
# Families of the catalogue on devices, nodes and services: the same entry in log and event is the same trouble.
_INFRASTRUCTURE: Final = (
    "nvidia.", "nvidia-health.", "accelerators.", "kernel.", "chassis.", "nodes.", "network.", "adapters.", "fabrics.",
    "storage.", "slurm.", "kubernetes.", "cloud.", "containers.", "service.", "events.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EventRule:
    """What a kind of node event does to a job; event_rules.toml explains the fields.

    Attributes:
        id: its name.
        title: the event in words.
        object: what the event is about.
        effect: what it does to a job that uses the object.
        persists: whether the state lasts until a repair.
        shared: whether what it names serves all jobs, so that it may be a pod of another one.
        explains: ids of the catalogue entries that it makes a log show.
        explains_named: further ones, which count where the lines of the failure name something that the event names.
        explains_older: further ones, which count where the event says that a driver, or a library that the failure
            names, was made older.
        explains_newer: further ones, which count where it says that such a library was made newer, and the same job
            succeeded before.
        explains_at_once: further ones, which count where the failure shows at once after the event, as programs alone
            may be the cause of them too.
        until_repair: those of them that jobs show which start later, before the object is repaired.
        leads_to: ids of the catalogue entries of other events that it causes.
        before_logs: whether it happens to a pod before that has a log, so that no log names its node.
        status: statuses by which a scheduler confirms it.
        within_s: how long after the event the failure shows at the latest, in seconds; 0 where it persists.
        source: where this is known from.
        disturbs: what running jobs may suffer from then on: "slows", or "stalls" for both; else empty.
        found_later: whether it is a state that a test finds, mostly after the job.
    """

    id: str
    title: str
    object: Object
    effect: Effect
    persists: bool
    shared: bool
    explains: frozenset[str]
    explains_named: frozenset[str]
    explains_older: frozenset[str]
    explains_newer: frozenset[str]
    explains_at_once: frozenset[str]
    until_repair: frozenset[str]
    leads_to: frozenset[str]
    before_logs: bool
    status: frozenset[str]
    within_s: int
    source: str
    disturbs: Disturbs = ""
    found_later: bool = False


@cache
def load() -> Mapping[str, EventRule]:
    """The rule of each catalogue entry that has one, by the entry's id; read once.

    Raises:
        ValueError: the file contradicts its format or the catalogue; the message names the rule.
    """
    rules: dict[str, EventRule] = {}
    for row in _read()["rule"]:
        rule = _parse(row)
        for entry in entry_groups.resolve(row["signatures"], f"{_FILE}: {rule.id}"):
            if entry in rules:
                raise ValueError(f"{_FILE}: {rule.id}: signatures: {entry} belongs to rule {rules[entry].id} already")
            rules[entry] = rule
    return rules


@lru_cache(maxsize=4_096)
def rules_of(entries: tuple[str, ...]) -> tuple[EventRule, ...]:
    """The rules of an event that these catalogue entries match, each once."""
    rules = load()
    return tuple({rule.id: rule for entry in entries if (rule := rules.get(entry)) is not None}.values())


@dataclass(frozen=True, slots=True)
class EventTraits:
    """What several rules of one event say together.

    Attributes:
        objects: what the event is about.
        effects: what it does to a job that uses an object.
        degrades_on: whether one degrades an object until a repair.
        within_s: how long after the event the failure shows at the latest, in seconds; 0 where nothing says so.
        slows: whether running jobs may get slower from then on.
        stalls: whether they may stop for a while.
        found_later: whether it is a state that a test finds, mostly after the job.
        lasts: whether it may last from before the start of a job: trouble of a service of all jobs or of file servers.
    """

    objects: frozenset[Object]
    effects: frozenset[Effect]
    degrades_on: bool
    within_s: int
    slows: bool
    stalls: bool
    found_later: bool
    lasts: bool


@lru_cache(maxsize=4_096)
def traits_of(entries: tuple[str, ...]) -> EventTraits:
    """The traits of an event that these catalogue entries match."""
    rules = rules_of(entries)
    return EventTraits(
        objects=frozenset(rule.object for rule in rules),
        effects=frozenset(rule.effect for rule in rules),
        degrades_on=any(rule.persists and rule.effect == "degrades" for rule in rules),
        within_s=max((rule.within_s for rule in rules), default=0),
        slows=any(rule.disturbs for rule in rules),
        stalls=any(rule.disturbs == "stalls" for rule in rules),
        found_later=any(rule.found_later for rule in rules),
        lasts=any(rule.shared or rule.object == "filesystem" for rule in rules),
    )


@lru_cache(maxsize=4_096)
def explained_by(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event makes a log show: none that only a program is the cause of."""
    explained = frozenset().union(*(rule.explains for rule in rules_of(entries)))
    return (explained | {entry for entry in entries if entry.startswith(_INFRASTRUCTURE)}) - program_errors()


@lru_cache(maxsize=4_096)
def explained_by_name(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event explains where the failure names something that the event names."""
    return frozenset().union(*(rule.explains_named for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def explained_by_version(entries: tuple[str, ...], *, is_older: bool) -> frozenset[str]:
    """Ids of the entries that such an event explains where it made a version older, or newer."""
    return frozenset().union(*(one.explains_older if is_older else one.explains_newer for one in rules_of(entries)))


@lru_cache(maxsize=4_096)
def explained_at_once(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event explains where the failure shows at once after it."""
    return frozenset().union(*(rule.explains_at_once for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def shown_until_repair(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event makes logs show until the object is repaired."""
    return frozenset().union(*(rule.until_repair for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def explained_or_shown(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event makes a log show, at once or until the object is repaired."""
    return explained_by(entries) | shown_until_repair(entries)


@lru_cache(maxsize=4_096)
def leads_to(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries of other events that such an event causes."""
    return frozenset().union(*(rule.leads_to for rule in rules_of(entries)))


def source() -> bytes:
    """The content of the files of the rules and of the groups that they use."""
    return _content() + entry_groups.source()


def _content() -> bytes:
    return files("classifiers.relevance").joinpath(_FILE).read_bytes()


@cache
def _read() -> Mapping[str, Any]:
    return tomllib.loads(_content().decode())


def _parse(row: Mapping[str, Any]) -> EventRule:
    where = f"{_FILE}: {row.get('id', '(no id)')}"
    unknown = set(row) - _KEYS
    if unknown:
        raise ValueError(f"{where}: unknown field {min(unknown)}")
    if row["object"] not in get_args(Object) or row["effect"] not in get_args(Effect):
        raise ValueError(f"{where}: object or effect: expected a known one, got {row['object']!r}, {row['effect']!r}")
    if row.get("disturbs", "") not in get_args(Disturbs):
        raise ValueError(f"{where}: disturbs: expected slows or stalls, got {row['disturbs']!r}")
    persists, within_s = bool(row.get("persists", False)), int(row.get("within_s", 0))
    if persists == bool(within_s):
        raise ValueError(f"{where}: expected either persists or within_s")
    return EventRule(
        id=row["id"],
        title=row["title"],
        object=row["object"],
        effect=row["effect"],
        persists=persists,
        shared=bool(row.get("shared", False)),
        explains=frozenset(entry_groups.resolve(row["explains"], where)),
        explains_named=frozenset(entry_groups.resolve(row.get("explains_named", []), where)),
        explains_older=frozenset(entry_groups.resolve(row.get("explains_older", []), where)),
        explains_newer=frozenset(entry_groups.resolve(row.get("explains_newer", []), where)),
        explains_at_once=frozenset(entry_groups.resolve(row.get("explains_at_once", []), where)),
        until_repair=frozenset(entry_groups.resolve(row.get("until_repair", []), where)),
        leads_to=frozenset(entry_groups.resolve(row.get("leads_to", []), where)),
        before_logs=bool(row.get("before_logs", False)),
        status=frozenset(row["status"]),
        within_s=within_s,
        source=row["source"],
        disturbs=row.get("disturbs", ""),
        found_later=bool(row.get("found_later", False)),
    )
