"""Failures for measuring only: declared programs that fail for real, as plans of the fault lab.

`sources/*.toml` holds a table `[source.case]` for each failure. A source is a program with its way of use; its cases
all belong to one half. Keys of a case:

    label      name of a set of labels in labels.toml: known from the induced fault
    py, run    the Python program (main.py), or the commands of the shell script run.sh
    files      further files by name
    pre, post  shell commands before and after it whose output is dropped (services, mounts)
    faults     induced faults, see tests.faultlab.induced_faults
    env        environment variables
    status     status of the event, if it does not follow from the exit code
    timeout    time limit in seconds
    gpus       GPUs that the job asked for
    network    names of `[network.NAME]` tables in labels.toml: the case is run once for each, with its fault and label

A table `[source.base]` without `py` and `run` holds keys that all cases of the source share.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from classifiers import taxonomy
from tests.faultlab.program import Plan, Root

FOLDER: Final = Path(__file__).parent
SOURCES: Final = FOLDER / "sources"
_KEYS: Final = {
    "label", "py", "run", "files", "pre", "post", "faults", "env", "status", "timeout", "gpus", "network",
}  # fmt: skip


class DeclarationError(ValueError):
    """A declaration is invalid: the text names source and case."""


def _tables(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in sorted(folder.glob("*.toml")):
        for source, cases in tomllib.loads(file.read_text(encoding="utf-8")).items():
            base = cases.pop("base", {})
            for name, case in cases.items():
                yield source, name, {**base, **case, "files": {**base.get("files", {}), **case.get("files", {})}}


def _labels(name: str, known: Mapping[str, Any], place: str) -> dict[str, Any]:
    if name not in known:
        raise DeclarationError(f"{place}: label: {name!r} is not in labels.toml")
    row = known[name]
    side = taxonomy.load().side_of(row["cause"])
    return {
        "side": side,
        "side_ok": [side, *row.get("sides", ())],
        "cause": row["cause"],
        "cause_ok": [row["cause"], *row.get("causes", ())],
        "category": None,
        "category_ok": [],
        "symptom": None,
        "symptom_ok": [],
        "retry": row["retry"][0],
        "retry_ok": list(row["retry"]),
    }


def _script(case: Mapping[str, Any]) -> str:
    lines = ["trap '{ " + case.get("post", ":").strip() + "; } >/dev/null 2>&1' EXIT"]
    if "pre" in case:
        lines.append("{ " + case["pre"].strip() + "\n} >/dev/null 2>&1 </dev/null")
    return "\n".join(lines) + "\n"


def _plan(source: str, name: str, case: Mapping[str, Any], labels: Mapping[str, Any]) -> Plan:
    written = dict(case["files"])
    if "py" in case:
        written["main.py"] = case["py"].lstrip("\n")
        step = "python -u main.py"
    else:
        written["run.sh"] = case["run"].lstrip("\n")
        step = "bash run.sh"
    written["start.sh"] = _script(case) + step + "\n"
    files = [{"kind": "write", "at": at, "text": text.lstrip("\n")} for at, text in written.items()]
    return Plan(
        family=source, name=name, variant="base", file=None, files=(), path=f"{source}.{name}",
        kind=f"{source}-{name}", framework="", environment="libraries", distribution="", launcher="command",
        ranks=1, nodes=1, args=(), command=("bash", "start.sh"), launcher_args=(), prepare=None,
        env={"PATH": "{lab}/libraries/bin:/usr/local/go/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:"
             "/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/15/bin",
             "RUSTUP_HOME": "/root/.rustup", "GOCACHE": "{lab}/gocache", "GOTOOLCHAIN": "local",
             **case.get("env", {})},
        rank_env={}, skip_ranks=(), faults=(*files, *case.get("faults", ())), timeout_s=float(case.get("timeout", 60)),
        status=case.get("status", "failed"), labels=labels, root=Root(0, None), logs="", seeds=(1,), fresh=True,
        cheap=False, gpu=False, preload=(),
    )  # fmt: skip


def load(folder: Path = SOURCES) -> dict[str, tuple[Plan, int | None]]:
    """Return the plans by the id of their case, each with the number of GPUs that the job asked for.

    Raises:
        DeclarationError: a declaration is invalid.
    """
    known = tomllib.loads((FOLDER / "labels.toml").read_text(encoding="utf-8"))
    networks = known.pop("network")
    found: dict[str, tuple[Plan, int | None]] = {}
    for source, name, case in _tables(folder):
        place = f"{source}.{name}"
        if unknown := set(case) - _KEYS:
            raise DeclarationError(f"{place}: unknown keys {sorted(unknown)}")
        if ("py" in case) == ("run" in case):
            raise DeclarationError(f"{place}: expected either py or run")
        for network in case.get("network", [None]):
            whole, full = case, name
            if network is not None:
                fault = networks[network]
                env = {**fault.get("env", {}), **case.get("env", {})}
                whole, full = (
                    {**case, "env": env, "faults": [*case.get("faults", ()), *fault.get("faults", ())]},
                    network,
                )
                whole["label"] = fault["label"]
                full = f"{name}-{network}"
            labels = _labels(whole.get("label", ""), known, place)
            found[f"{source}.{full}"] = (_plan(source, full, whole, labels), case.get("gpus"))
    return found
