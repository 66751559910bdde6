"""What node events do to a job, read from event_rules.toml and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, get_args

from classifiers import signatures, taxonomy
from classifiers.observation_names import OBSERVATIONS

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
        "explains_at_once",
        "until_repair",
        "leads_to",
        "leads_stated",
        "before_logs",
        "status",
        "within_s",
        "source",
        "disturbs",
        "unchecked",
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
        explains_at_once: further ones, which count where the failure shows at once after the event, as programs alone
            may be the cause of them too.
        until_repair: those of them that jobs show which start later, before the object is repaired.
        leads_to: ids of the catalogue entries of other events that it causes.
        leads_stated: ids of further ones, which a change causes where they state the value that it set.
        before_logs: whether it happens to a pod before that has a log, so that no log names its node.
        status: statuses by which a scheduler confirms it.
        within_s: how long after the event the failure shows at the latest, in seconds; 0 where it persists.
        source: where this is known from.
        disturbs: what running jobs may suffer from then on: "slows", or "stalls" for both; else empty.
        unchecked: whether health checks of nodes do not look for it.
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
    explains_at_once: frozenset[str]
    until_repair: frozenset[str]
    leads_to: frozenset[str]
    leads_stated: frozenset[str]
    before_logs: bool
    status: frozenset[str]
    within_s: int
    source: str
    disturbs: Disturbs = ""
    unchecked: bool = False
    found_later: bool = False


@cache
def waits() -> frozenset[str]:
    """Ids of the entries by which a process says that another one is gone or late; read once."""
    return frozenset(_resolve(_read()["waits"], _known(), "waits"))


@cache
def timeouts() -> frozenset[str]:
    """Ids of those entries by which a process says that it waited until a limit; read once."""
    return frozenset(_resolve(_read()["timeouts"], _known(), "timeouts"))


@cache
def joins() -> frozenset[str]:
    """Ids of the entries by which a process says that not all others came to begin; read once."""
    return frozenset(_resolve(_read()["joins"], _known(), "joins"))


@cache
def unanswered() -> frozenset[str]:
    """Ids of the entries by which a process says that another one does not answer; read once."""
    return frozenset(_resolve(_read()["unanswered"], _known(), "unanswered"))


@cache
def nodes_lost() -> frozenset[str]:
    """Ids of the entries by which a log or a scheduler says that a whole node is gone; read once."""
    return frozenset(_resolve(_read()["nodes_lost"], _known(), "nodes_lost"))


@cache
def deadlines() -> frozenset[str]:
    """Ids of the entries by which a scheduler says that a job did not end in time; read once."""
    return frozenset(_resolve(_read()["deadlines"], _known(), "deadlines"))


@cache
def operations() -> frozenset[str]:
    """Ids of the entries that know an operation on a node, which a report of changes may name too; read once."""
    return frozenset(_resolve(_read()["operations"], _known(), "operations"))


@cache
def of_redundant_parts() -> frozenset[str]:
    """Ids of the entries of parts of which a node has several, and goes on with one less; read once."""
    return frozenset(_resolve(_read()["several_of"], _known(), "several_of"))


@cache
def consequences() -> frozenset[str]:
    """Ids of the entries by which processes and launchers report what any failure makes them report; read once."""
    return frozenset(entry.id for entry in signatures.packaged().entries if entry.role in {"cascade", "teardown"})


@cache
def of_programs() -> frozenset[str]:
    """Ids of the entries whose causes are all on the user's side, without those of deadlines."""
    side_of = taxonomy.load().side_of
    of_users = {
        entry.id
        for entry in signatures.packaged().entries
        if entry.causes and all(side_of(cause) == "user" for cause in entry.causes)
    }
    return frozenset(of_users - deadlines())


@cache
def load() -> Mapping[str, EventRule]:
    """The rule of each catalogue entry that has one, by the entry's id; read once.

    Raises:
        ValueError: the file contradicts its format or the catalogue; the message names the rule.
    """
    known = _known()
    rules: dict[str, EventRule] = {}
    for row in _read()["rule"]:
        rule = _parse(row, known)
        for entry in _resolve(row["signatures"], known, rule.id):
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
        unchecked: whether health checks of nodes do not look for it.
        found_later: whether it is a state that a test finds, mostly after the job.
    """

    objects: frozenset[Object]
    effects: frozenset[Effect]
    degrades_on: bool
    within_s: int
    slows: bool
    stalls: bool
    unchecked: bool
    found_later: bool


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
        unchecked=bool(rules) and all(rule.unchecked for rule in rules),
        found_later=any(rule.found_later for rule in rules),
    )


@cache
def ended_by_request() -> frozenset[str]:
    """Ids of the entries by which a scheduler or an operator says who, or which policy, ended a job; read once."""
    return frozenset(_resolve(_read()["ended_by_request"], _known(), "ended_by_request"))


@lru_cache(maxsize=4_096)
def explained_by(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event makes a log show: none that only a program is the cause of."""
    explained = frozenset().union(*(rule.explains for rule in rules_of(entries)))
    return (explained | {entry for entry in entries if entry.startswith(_INFRASTRUCTURE)}) - of_programs()


@lru_cache(maxsize=4_096)
def explained_by_name(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event explains where the failure names something that the event names."""
    return frozenset().union(*(rule.explains_named for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def explained_at_once(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event explains where the failure shows at once after it."""
    return frozenset().union(*(rule.explains_at_once for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def shown_until_repair(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries that such an event makes logs show until the object is repaired."""
    return frozenset().union(*(rule.until_repair for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def leads_to(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries of other events that such an event causes."""
    return frozenset().union(*(rule.leads_to for rule in rules_of(entries)))


@lru_cache(maxsize=4_096)
def leads_stated(entries: tuple[str, ...]) -> frozenset[str]:
    """Ids of the entries of other events that a change causes where they state the value that it set."""
    return frozenset().union(*(rule.leads_stated for rule in rules_of(entries)))


def source() -> bytes:
    """The content of the file of the rules."""
    return files("classifiers.relevance").joinpath(_FILE).read_bytes()


@cache
def _read() -> Mapping[str, Any]:
    return tomllib.loads(source().decode())


@cache
def _known() -> frozenset[str]:
    return frozenset(entry.id for entry in signatures.packaged().entries) | OBSERVATIONS


def _parse(row: Mapping[str, Any], known: frozenset[str]) -> EventRule:
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
        explains=frozenset(_resolve(row["explains"], known, row["id"])),
        explains_named=frozenset(_resolve(row.get("explains_named", []), known, row["id"])),
        explains_at_once=frozenset(_resolve(row.get("explains_at_once", []), known, row["id"])),
        until_repair=frozenset(_resolve(row.get("until_repair", []), known, row["id"])),
        leads_to=frozenset(_resolve(row.get("leads_to", []), known, row["id"])),
        leads_stated=frozenset(_resolve(row.get("leads_stated", []), known, row["id"])),
        before_logs=bool(row.get("before_logs", False)),
        status=frozenset(row["status"]),
        within_s=within_s,
        source=row["source"],
        disturbs=row.get("disturbs", ""),
        unchecked=bool(row.get("unchecked", False)),
        found_later=bool(row.get("found_later", False)),
    )


def _resolve(names: list[str], known: frozenset[str], rule: str) -> list[str]:
    """The ids that names stand for; a name may end in "*"."""
    found = []
    for name in names:
        some = [one for one in known if one == name or (name.endswith("*") and one.startswith(name[:-1]))]
        if not some:
            raise ValueError(f"{_FILE}: {rule}: no catalogue entry is named {name}")
        found += sorted(some)
    return found
