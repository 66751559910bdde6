"""Lab programs: small files that fail for real, with their declared labels and launch settings.

How to declare a program
------------------------
A family is a folder below `programs/` with any number of `*.toml` files, and Python or shell files, which may lie in
subfolders by topic::

    framework = "pytorch"            # provenance and event field
    environment = "torch"            # a venv of environment.py; "" = the interpreter that runs the lab, "system" = PATH
    preload = ["torch"]              # modules that the preloaded interpreter imports once; absent: always fresh
    distribution = "torch"           # whose version goes to the provenance (importlib.metadata name), "" = none

    [[program]]
    name = "shape_linear"            # unique in the family; the id is "<folder>/<name>"
    file = "tensors/shape_linear.py" # path from the TOML's folder; copied into the run's folder as train.py, main.py ...
    path = "torch.linear.shape"      # key of the failing code path: at most five programs may share it
    kind = "linear-shape-mismatch"   # what makes two failures the same kind (fingerprint truth)
    launcher = "python"              # python | torchrun | ranks | mpirun | horovodrun | bash | command
    ranks = 1                        # processes in all
    nodes = 1                        # host names the ranks are spread over (torchrun: one agent a node)
    args = ["--dim", "64"]           # words may hold placeholders, see below
    timeout_s = 60                   # the runner's time limit; reaching it is status `timeout` (or `hung`, see status)
    status = "failed"                # the scheduler's status, if it does not follow from the exit code
    # axes that do not apply: "" (category without a program error, symptom of a single process)
    labels = { side = "user", cause = "USER.1", category = "DL.3", symptom = "D.1.5", retry = "futile" }
    ok = { symptom = ["D.1.5", "D.1.4"] }      # other labels that an expert could defend; the main one is added
    root = { rank = 0, line = "mat1 and mat2 shapes" }   # regex of the first failing line, searched in that rank's
                                     # output; `rank = "all"` if every rank fails in the same way; `where = "launcher"`
                                     # if only the launcher reports it (a killed rank); no `line` if nothing does
    cheap = false                    # true: needs no heavy framework, CI may re-run it

    [[program.variant]]              # at least one; a key given here overrides the program's (labels are merged)
    name = "mlp"
    args = ["--dim", "96", "--log", "json"]
    env = { LOGLEVEL = "INFO" }
    seeds = [1, 2]                   # each run is program x variant x seed
    faults = [{ kind = "rlimit", resource = "as", mb = 900 }]

`more = [words]` of a variant is appended to the program's args. Variants shared by several programs (models, log
styles, launchers) are declared once in `[sets]` of the file (`short = [{ name = "cnn-json", more = ["--model", "cnn"] }]`)
and referenced by name: `sets = ["short"]`. The variants of a program come first, then those of its sets.

Placeholders in args, env and faults: {work} {seed} {port} {port2} {python} {http} {https} {host} {lab} (the folder
of the environments). `{http}` is the address of the stand-in server that an `http` fault starts. Programs also get
their seed in the variable LAB_SEED. The folder's `files = ["lib.py"]` (program key) are copied next to the program
under their own names, without subfolders. `prepare = [args]` runs the program once before the run with those args (to
write a checkpoint, for example; its output is dropped); faults that alter files are induced after it.
`command = [words]` replaces the program for launcher `command`. Launchers: `ranks`
starts each rank with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, as srun would; a variant may set
`rank_env = { "2" = { WORLD_SIZE = "5" } }` and `skip_ranks = [3]`; `launcher_args` are arguments of the launcher.
`logs` = "ranks", "console" or "tee" selects what is captured (else the seed chooses); `fresh = true` forbids the fork
server. Fault kinds: see induced_faults.py.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from classifiers import contracts, taxonomy

LAUNCHERS = ("python", "torchrun", "ranks", "mpirun", "horovodrun", "bash", "command")
STATUSES = tuple(one for one in contracts.STATUSES if one != "succeeded")
LOGS = ("", "ranks", "console", "tee")
RETRIES = ("helps", "helps_elsewhere", "after_repair", "futile")
PROGRAMS = Path(__file__).parent / "programs"


class DeclarationError(ValueError):
    """A declaration is invalid: the text names file, program and field."""


@dataclass(frozen=True, slots=True)
class Root:
    """The onset of the failure: `rank` None = all ranks equally; `line` a regex, None = no line reports it."""

    rank: int | None
    line: re.Pattern[str] | None
    where: str = "rank"


@dataclass(frozen=True, slots=True)
class Plan:
    """One program with one variant: everything that a run needs except the seed."""

    family: str
    name: str
    variant: str
    file: Path | None
    files: tuple[Path, ...]
    path: str
    kind: str
    framework: str
    environment: str
    distribution: str
    launcher: str
    ranks: int
    nodes: int
    args: tuple[str, ...]
    command: tuple[str, ...]
    launcher_args: tuple[str, ...]
    prepare: tuple[str, ...] | None
    env: Mapping[str, str]
    rank_env: Mapping[int, Mapping[str, str]]
    skip_ranks: tuple[int, ...]
    faults: tuple[Mapping[str, Any], ...]
    timeout_s: float
    status: str
    labels: Mapping[str, Any]
    root: Root
    logs: str
    seeds: tuple[int, ...]
    fresh: bool
    cheap: bool
    gpu: bool
    preload: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program's id."""
        return f"{self.family}/{self.name}"

    @property
    def id(self) -> str:
        """The id of program and variant."""
        return f"{self.program}@{self.variant}"


_AXES = ("side", "cause", "category", "symptom", "retry")
_KEYS = {
    "name", "file", "files", "path", "kind", "launcher", "ranks", "nodes", "args", "timeout_s", "status", "labels", "ok",
    "root",
    "cheap", "variant", "env", "rank_env", "skip_ranks", "seeds", "faults", "prepare", "command", "launcher_args",
    "logs",
    "fresh", "framework", "environment", "distribution", "gpu", "preload", "more",
}  # fmt: skip


@dataclass(slots=True)
class _Place:
    file: Path
    program: str = "?"
    seen: set[str] = field(default_factory=set)

    def wrong(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self.file.parent.name}/{self.file.name}: program {self.program}: {what}")


def _labels(row: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    known = taxonomy.load()
    allowed = {
        "side": known.sides, "cause": known.causes, "category": known.categories, "symptom": known.symptoms,
        "retry": dict.fromkeys(RETRIES),
    }  # fmt: skip
    labels = dict(row.get("labels", {}))
    ok = row.get("ok", {})
    if labels.get("cause") not in known.causes:
        raise place.wrong(f"labels.cause: {labels.get('cause')!r} is not in the taxonomy")
    if "side" not in labels and labels.get("cause") in known.causes:
        labels["side"] = known.side_of(labels["cause"])
    if extra := (set(labels) | set(ok)) - set(_AXES):
        raise place.wrong(f"labels: unknown {sorted(extra)}")
    out: dict[str, Any] = {}
    for axis in _AXES:
        value = labels.get(axis) or None
        value = None if value == "none" else value
        others = [value, *(None if entry in {"", "none"} else entry for entry in ok.get(axis, []))]
        if value is None and axis in {"side", "cause", "retry"}:
            raise place.wrong(f"labels.{axis}: missing")
        for entry in others:
            if entry is not None and entry not in allowed[axis]:
                raise place.wrong(f"labels.{axis}: {entry!r} is not in the taxonomy")
        none = "none" if axis in {"category", "symptom"} else None
        out[axis] = value or none
        out[f"{axis}_ok"] = list(dict.fromkeys(entry or none for entry in others))
    if known.side_of(out["cause"]) != out["side"]:
        raise place.wrong(f"labels: cause {out['cause']} is not of side {out['side']}")
    return out


def _root(row: Mapping[str, Any], place: _Place) -> Root:
    root = row.get("root")
    if root is None:
        raise place.wrong("root: missing (rank, line)")
    rank = root.get("rank", 0)
    line = root.get("line")
    try:
        pattern = None if line is None else re.compile(line)
    except re.error as error:
        raise place.wrong(f"root.line: {error}") from None
    return Root(None if rank == "all" else int(rank), pattern, root.get("where", "rank"))


def _plan(family: Mapping[str, Any], program: Mapping[str, Any], variant: Mapping[str, Any], place: _Place) -> Plan:
    row = {**program, **variant}
    for merged in ("labels", "ok", "env"):
        row[merged] = {**program.get(merged, {}), **variant.get(merged, {})}
    if unknown := set(row) - _KEYS:
        raise place.wrong(f"unknown key {sorted(unknown)}")
    for key in ("path", "kind"):
        if not row.get(key):
            raise place.wrong(f"{key}: missing")
    launcher = row.get("launcher", "python")
    if launcher not in LAUNCHERS:
        raise place.wrong(f"launcher: {launcher!r}, expected one of {', '.join(LAUNCHERS)}")
    if row.get("status", "failed") not in STATUSES:
        raise place.wrong(f"status: {row['status']!r}, expected one of {', '.join(STATUSES)}")
    if row.get("logs", "") not in LOGS:
        raise place.wrong(f"logs: {row['logs']!r}, expected one of {', '.join(LOGS)}")
    folder = place.file.parent
    file = folder / row["file"] if "file" in row else None
    if file is None and launcher != "command":
        raise place.wrong("file: missing")
    files = tuple(folder / name for name in row.get("files", ()))
    for needed in (*([file] if file else []), *files):
        if not needed.is_file():
            raise place.wrong(f"file: {needed.name} is not there")
    return Plan(
        family=folder.name,
        name=program["name"],
        variant=variant["name"],
        file=file,
        files=files,
        path=row["path"],
        kind=row["kind"],
        framework=row.get("framework", family.get("framework", "")),
        environment=row.get("environment", family.get("environment", "")),
        distribution=row.get("distribution", family.get("distribution", "")),
        launcher=launcher,
        ranks=int(row.get("ranks", 1)),
        nodes=int(row.get("nodes", 1)),
        args=(*map(str, row.get("args", ())), *map(str, row.get("more", ()))),
        command=tuple(map(str, row.get("command", ()))),
        launcher_args=tuple(map(str, row.get("launcher_args", ()))),
        prepare=tuple(map(str, row["prepare"])) if "prepare" in row else None,
        env={key: str(value) for key, value in row["env"].items()},
        rank_env={int(r): {k: str(v) for k, v in e.items()} for r, e in row.get("rank_env", {}).items()},
        skip_ranks=tuple(row.get("skip_ranks", ())),
        faults=tuple(row.get("faults", ())),
        timeout_s=float(row.get("timeout_s", 60)),
        status=row.get("status", "failed"),
        labels=_labels(row, place),
        root=_root(row, place),
        logs=row.get("logs", ""),
        seeds=tuple(row.get("seeds", (1,))),
        fresh=bool(row.get("fresh", False)),
        cheap=bool(row.get("cheap", family.get("cheap", False))),
        gpu=bool(row.get("gpu", False)),
        preload=tuple(row.get("preload", family.get("preload", ()))),
    )


def read(file: Path) -> Iterator[Plan]:
    """Yield the plans that one TOML file declares.

    Raises:
        DeclarationError: the file is invalid; names file, program and field.
    """
    place = _Place(file)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise place.wrong(str(error)) from None
    sets: Mapping[str, Any] = data.get("sets", {})
    for program in data.get("program", ()):
        place.program = str(program.get("name", "?"))
        if place.program in place.seen or place.program == "?":
            raise place.wrong("name: missing or given twice")
        place.seen.add(place.program)
        bare = {key: value for key, value in program.items() if key not in {"variant", "sets"}}
        if missing := [name for name in program.get("sets", ()) if name not in sets]:
            raise place.wrong(f"sets: {missing} are not declared")
        variants = [*program.get("variant", ()), *(entry for name in program.get("sets", ()) for entry in sets[name])]
        variants = variants or [{"name": "base"}]
        if len({v.get("name") for v in variants}) != len(variants):
            raise place.wrong("variant: a name is missing or given twice")
        for variant in variants:
            yield _plan(data, bare, variant, place)


def load(root: Path = PROGRAMS) -> list[Plan]:
    """Return all declared plans, in the order of families and files.

    Raises:
        DeclarationError: a declaration is invalid, or two programs of a family share a name.
    """
    plans = [plan for file in sorted(root.glob("*/*.toml")) for plan in read(file)]
    ids = [plan.id for plan in plans]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise DeclarationError(f"declared twice: {sorted(twice)}")
    return plans
