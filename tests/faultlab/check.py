"""Verifies the corpus: repeats captured runs and compares their exit status and the onset of their failure."""

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faultlab import capture, case_files, cases, environment, induced_faults
from tests.faultlab.program import Plan

_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b"), "H"),
    (re.compile(r"(?:/[\w.+-]+)+/?"), "P"),
    (re.compile(r"\d+"), "0"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A repeated run: `wrong` describes a difference, `skipped` why it could not run; both None: it matches."""

    run: str
    wrong: str | None = None
    skipped: str | None = None


def masked(line: str | None) -> str | None:
    """Return a line without parts that vary between runs: numbers, addresses, paths."""
    if line is None:
        return None
    for pattern, instead in _MASKS:
        line = pattern.sub(instead, line)
    return line.strip()


def ending(event: Mapping[str, Any]) -> str:
    """Return the class of an exit: the status, and whether a code or a signal ended it (128 + n is a signal)."""
    code, number = event.get("exit_code"), event.get("signal")
    if number is not None or (code is not None and code > 128):
        return f"{event['status']} by signal {number if number is not None else int(code or 0) - 128}"
    return f"{event['status']} with {'no code' if code is None else 'a code'}"


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the captured cases below a folder."""
    for file in case_files.case_files(folder):
        for line in case_files.read_lines(file):
            yield json.loads(line)


def choose(
    captured: Iterable[Mapping[str, Any]], plans: Sequence[Plan], count: int, *, cheap: bool, seed: int | None
) -> list[tuple[Mapping[str, Any], Plan]]:
    """Return a random sample of captured cases with their plans; `cheap`: only those without a heavy framework."""
    by_run = {f"{plan.id}#{number}": plan for plan in plans for number in plan.seeds}
    pairs = [
        (case, by_run[case["provenance"]["run"]])
        for case in captured
        if case["provenance"].get("run") in by_run and (not cheap or by_run[case["provenance"]["run"]].cheap)
    ]
    random.Random(seed).shuffle(pairs)
    return pairs[:count]


def again(lab: capture.Lab, case: Mapping[str, Any], plan: Plan, tries: int = 3) -> Compared:
    """Repeat a captured case's plan and compare; if ranks race, repeat up to a limit until it matches."""
    compared = _once(lab, case, plan)
    while compared.wrong and tries > 1:
        tries -= 1
        compared = _once(lab, case, plan)
    return compared


def _once(lab: capture.Lab, case: Mapping[str, Any], plan: Plan) -> Compared:
    name = str(case["provenance"]["run"])
    try:
        made = cases.case(lab.run(plan, int(case["provenance"]["seed"])))
    except (induced_faults.Impossible, environment.NoEnvironment) as error:
        return Compared(name, skipped=str(error))
    except cases.NotAsDeclared as error:
        return Compared(name, wrong=str(error).splitlines()[0])
    before, now = ending(case["event"]), ending(made["event"])
    if before != now:
        return Compared(name, wrong=f"ended {now}, was {before}")
    old, new = masked(case["labels"]["root_line"]), masked(made["labels"]["root_line"])
    if old != new:
        return Compared(name, wrong=f"root line {new!r}, was {old!r}")
    return Compared(name)
