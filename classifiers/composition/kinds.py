"""Reads the kinds of failure: one failure mode each, with its labels and example texts.

They are TOML files, `classifiers/data/kinds/<side>/<CAUSE>/<topic>.toml` (a large cause has folders by symptom):

    medium = "log"                                   # log: what programs print; report: what people write about it
    source = "message formats of the NVIDIA driver"  # source of the wording of the texts
    labels = { category = "none", symptom = "D.1.3", retry = "helps_elsewhere" }

    [[kind]]
    id = "HW.GPU.2.xid-79"                           # <cause>.<slug>; the slug: a-z, 0-9 and dashes
    accepted = { cause = ["HW.GPU.4"] }              # further labels that count as right
    labelled_for = "symptom"                         # only this axis is certain, or "category"; default: "all" axes
    event = "failed exit=1 sched=slurm"              # status, then exit, sig, sched, reason, fw, gpus, nodes
    scene = "pytorch"                                # routine lines to use (scenes.toml); default plain
    all_facts = true                                 # the event's facts are in every copy; default: in some
    copies = 2                                       # cases per text; default 1
    texts = ['''...''', '''...''']                   # at most five; their language: template_text.py

    [[run]]                                          # a run of several ranks; as above, and
    launchers = ["torchrun", "srun"]                 # scenes.toml [launcher]
    cascades = ["nccl_timeout_new"]                  # scenes.toml [cascade]
    ranks = [2, 4, 8]                                # numbers of ranks to choose from
    silent = true                                    # the first failing rank prints nothing: no texts

`medium`, `source`, `labelled_for` and the three `labels` at the top of a file hold for each of its entries that does not
state its own.
A run's texts are the output of its first failing rank; `@node` lines are those of its node.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from classifiers import taxonomy
from classifiers.composition.template_text import RoutineLines

MEDIA: Final = ("log", "report")
MAX_TEXTS: Final = 5
_ID: Final = re.compile(r"([A-Z]+(?:\.[A-Z0-9]+)*)\.([a-z0-9]+(?:-[a-z0-9]+)*)")
_LABELS: Final = ("category", "symptom", "retry")
_REQUIRED: Final = {"id", "medium", "source", "labels"}
_OPTIONAL: Final = {"accepted", "labelled_for", "event", "scene", "all_facts", "copies", "texts"}
_OF_FILE: Final = {"medium", "source", "labelled_for", "labels", "kind", "run"}
_ALL_AXES: Final = "all"
_OF_RUNS: Final = {"launchers", "cascades", "silent", "ranks"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of failure. `labels`: the best label of each axis; `accepted`: all correct labels of each axis."""

    id: str
    medium: str
    source: str
    labels: Mapping[str, str]
    accepted: Mapping[str, tuple[str, ...]]
    event: Mapping[str, Any]
    file: str
    labelled_for: str | None = None
    scene: str = "plain"
    all_facts: bool = False
    copies: int = 1
    texts: Sequence[str] = ()
    launchers: Sequence[str] = ()
    cascades: Sequence[str] = ()
    silent: bool = False
    is_run: bool = False
    ranks: Sequence[int] = field(default=(2, 4, 8, 8, 16))


def folder() -> Traversable:
    """Return the folder of the packaged kinds."""
    return files("classifiers").joinpath("data", "kinds")


def _event(words: str) -> dict[str, Any]:
    status, *facts = words.split()
    event: dict[str, Any] = {"status": status}
    names = {"exit": "exit_code", "sig": "signal", "sched": "scheduler", "fw": "framework"}
    for fact in facts:
        key, _, value = fact.partition("=")
        event[names.get(key, key)] = int(value) if value.isdigit() else value
    return event


def _labels(raw: Mapping[str, Any], cause: str) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    axes = taxonomy.load()
    if set(raw["labels"]) != set(_LABELS):
        raise ValueError(f"labels: expected {', '.join(_LABELS)}")
    best = {"side": axes.side_of(cause), "cause": cause, **raw["labels"]}
    more: dict[str, list[str]] = {axis: list(codes) for axis, codes in raw.get("accepted", {}).items()}
    if unknown := set(more) - set(best):
        raise ValueError(f"accepted: unknown axis {min(unknown)!r}")
    more.setdefault("side", []).extend(axes.side_of(code) for code in more.get("cause", ()))
    return best, {axis: tuple(dict.fromkeys([label, *more.get(axis, ())])) for axis, label in best.items()}


def _checked(raw: Mapping[str, Any], *, is_run: bool) -> str:
    """Validate the fields of an entry and return its cause.

    Raises:
        ValueError: a field does not follow the format.
    """
    known = _REQUIRED | _OPTIONAL | (_OF_RUNS if is_run else set())
    if missing := _REQUIRED - set(raw):
        raise ValueError(f"field {min(missing)!r} is missing")
    if unknown := set(raw) - known:
        raise ValueError(f"unknown field {min(unknown)!r}")
    parts = _ID.fullmatch(raw["id"])
    if parts is None:
        raise ValueError("id: expected <cause>.<slug>, the slug of a-z, 0-9 and dashes")
    if raw["medium"] not in MEDIA:
        raise ValueError(f"medium: expected {' or '.join(MEDIA)}, got {raw['medium']!r}")
    if raw.get("labelled_for", _ALL_AXES) not in {_ALL_AXES, "category", "symptom"}:
        raise ValueError(f"labelled_for: expected all, category or symptom, got {raw['labelled_for']!r}")
    if len(raw.get("texts", ())) > MAX_TEXTS:
        raise ValueError(f"texts: expected at most {MAX_TEXTS}, got {len(raw['texts'])}")
    if not raw.get("texts") and not raw.get("silent"):
        raise ValueError("texts: expected at least one")
    return parts[1]


def _kind(raw: Mapping[str, Any], file: str, *, is_run: bool) -> Kind:
    try:
        best, accepted = _labels(raw, _checked(raw, is_run=is_run))
        event = _event(raw.get("event", "failed"))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file}: {raw.get('id')}: {error}") from error
    return Kind(
        id=raw["id"],
        medium=raw["medium"],
        source=raw["source"],
        labels=best,
        accepted=accepted,
        event=event,
        file=file,
        labelled_for=None if raw.get("labelled_for") == _ALL_AXES else raw.get("labelled_for"),
        scene=raw.get("scene", "pytorch" if is_run else "plain"),
        all_facts=raw.get("all_facts", False),
        copies=raw.get("copies", 1),
        texts=raw.get("texts", ()),
        launchers=raw.get("launchers", ()),
        cascades=raw.get("cascades", ()),
        silent=raw.get("silent", False),
        is_run=is_run,
        ranks=raw.get("ranks", (2, 4, 8, 8, 16)),
    )


def _entries(data: Mapping[str, Any], table: str) -> Iterator[dict[str, Any]]:
    """The entries of a table, each with the fields of its file that it does not state itself."""
    shared = {key: data[key] for key in ("medium", "source", "labelled_for") if key in data}
    for raw in data.get(table, ()):
        labels = {**data.get("labels", {}), **raw.get("labels", {})}
        yield {**shared, **raw, **({"labels": labels} if labels else {})}


def kind_files(root: Traversable, prefix: str = "") -> list[tuple[str, Traversable]]:
    """Return name (`user/USER.1/...`, without suffix) and file of all files of kinds, ordered by name."""
    found: list[tuple[str, Traversable]] = []
    for entry in sorted(root.iterdir(), key=lambda path: path.name):
        if entry.is_dir():
            found += kind_files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            found.append((prefix + entry.name.removesuffix(".toml"), entry))
    return found


def read(root: Traversable | None = None) -> list[Kind]:
    """Return all kinds, in the order of files and entries.

    Raises:
        ValueError: an entry does not follow the format; the message names file and kind.
    """
    found: list[Kind] = []
    for name, file in kind_files(root or folder()):
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{name}: {error}") from error
        if unknown := set(data) - _OF_FILE:
            raise ValueError(f"{name}: unknown field {min(unknown)!r}")
        found += [_kind(raw, name, is_run=False) for raw in _entries(data, "kind")]
        found += [_kind(raw, name, is_run=True) for raw in _entries(data, "run")]
    seen: set[str] = set()
    for kind in found:
        if kind.id in seen:
            raise ValueError(f"{kind.file}: {kind.id}: the id occurs twice")
        seen.add(kind.id)
    return found


def routine_lines() -> RoutineLines:
    """Return the routine lines by scene."""
    data = tomllib.loads(files("classifiers.composition").joinpath("scenes.toml").read_text(encoding="utf-8"))
    return RoutineLines(scenes=data["scene"], cascades=data["cascade"], launchers=data["launcher"])
