"""The data files of compositions: what is wrong (truth), how it is said (texts), and under which facts.

`kinds/*.toml` holds short failures, `runs/*.toml` long ones of many ranks:

    about = "symptom"                                # first line of a file, optional: the axis that its kinds are for

    [[kind]]
    name = "xid-79"                                  # kind of failure, a-z 0-9 and dashes
    truth = "HW.GPU.2 none D.1.3? helps_elsewhere"   # cause, category, symptom, retry; `?`: or none
    ok = { cause = ["HW.GPU.4"] }                    # further labels that count as right
    event = "failed exit=1 sched=slurm"              # status, then exit, sig, sched, reason, fw, gpus, nodes
    scene = "pytorch"                                # whose progress and noise (scenes.toml); default plain
    keep = true                                      # the facts stay in every copy; default: some copies lose them
    copies = 2                                       # cases a text; default 1
    texts = ['''...''', '''...''']                   # language: text.py

    [[run]]                                          # as above, and
    launchers = ["torchrun", "srun"]                 # scenes.toml [launcher]
    cascades = ["nccl_timeout_new"]                  # scenes.toml [cascade]
    root = ['''...''']                               # what the rank says where it began; `@node` lines are its node's
    silent = true                                    # the rank says nothing (killed, node lost): no root text
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from classifiers import taxonomy
from classifiers.composition.template_text import Scenery

HERE = Path(__file__).parent
COMMON = {"name", "truth", "ok", "event", "scene", "keep", "copies", "weight"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of failure with its wordings. `axes` are cause, category, symptom and retry."""

    name: str
    axes: Mapping[str, str]
    allowed: Mapping[str, tuple[str, ...]]
    event: Mapping[str, Any]
    file: str
    scene: str = "plain"
    keep: bool = False
    copies: int = 1
    texts: Sequence[str] = ()
    launchers: Sequence[str] = ()
    cascades: Sequence[str] = ()
    silent: bool = False
    is_run: bool = False
    about: str | None = None
    ranks: Sequence[int] = field(default=(2, 4, 8, 8, 16))


def _event(said: str) -> dict[str, Any]:
    status, *facts = said.split()
    event: dict[str, Any] = {"status": status}
    names = {"exit": "exit_code", "sig": "signal", "sched": "scheduler", "fw": "framework"}
    for fact in facts:
        key, _, value = fact.partition("=")
        event[names.get(key, key)] = int(value) if value.isdigit() else value
    return event


def _truth(raw: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    axes_known = taxonomy.load()
    best: dict[str, str] = {}
    more: dict[str, list[str]] = {axis: list(codes) for axis, codes in raw.get("ok", {}).items()}
    for axis, said in zip(("cause", "category", "symptom", "retry"), raw["truth"].split(), strict=True):
        label = said.rstrip("?")
        best[axis] = label
        if said.endswith("?"):
            more.setdefault(axis, []).append("none")
    best["side"] = axes_known.side_of(best["cause"])
    more.setdefault("side", [])
    more["side"] += [axes_known.side_of(cause) for cause in more.get("cause", ())]
    allowed = {axis: tuple(dict.fromkeys([label, *more.get(axis, ())])) for axis, label in best.items()}
    return best, allowed


def _kind(raw: Mapping[str, Any], file: str, about: str | None, *, is_run: bool) -> Kind:
    known = COMMON | ({"launchers", "cascades", "root", "silent", "ranks"} if is_run else {"texts"})
    if unknown := set(raw) - known:
        raise ValueError(f"{file}: {raw.get('name')}: unknown field {min(unknown)!r}")
    try:
        best, allowed = _truth(raw)
        event = _event(raw.get("event", "failed"))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file}: {raw.get('name')}: {error}") from error
    return Kind(
        name=raw["name"],
        axes=best,
        allowed=allowed,
        event=event,
        file=file,
        scene=raw.get("scene", "pytorch" if is_run else "plain"),
        keep=raw.get("keep", False),
        copies=raw.get("copies", 1),
        texts=raw.get("root" if is_run else "texts", ()),
        launchers=raw.get("launchers", ()),
        cascades=raw.get("cascades", ()),
        silent=raw.get("silent", False),
        is_run=is_run,
        about=about,
        ranks=raw.get("ranks", (2, 4, 8, 8, 16)),
    )


def read() -> list[Kind]:
    """All kinds, in the order of files and entries.

    Raises:
        ValueError: an entry is not as the format asks; the text names file and kind.
    """
    found: list[Kind] = []
    for file in sorted([*HERE.glob("kinds/*.toml"), *HERE.glob("runs/*.toml")]):
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{file.name}: {error}") from error
        about = data.get("about")
        if about not in {None, "category", "symptom"}:
            raise ValueError(f"{file.name}: about: category or symptom expected, not {about!r}")
        found += [_kind(raw, file.stem, about, is_run=False) for raw in data.get("kind", ())]
        found += [_kind(raw, file.stem, about, is_run=True) for raw in data.get("run", ())]
    names = [kind.name for kind in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"kinds stand twice: {sorted(twice)}")
    return found


def scenery() -> Scenery:
    """The scenes of daily life."""
    data = tomllib.loads((HERE / "scenes.toml").read_text(encoding="utf-8"))
    return Scenery(scenes=data["scene"], cascades=data["cascade"], launchers=data["launcher"])
