"""Does the corpus still hold? Runs captured programs again and compares how they end and where they begin to fail."""

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
    """One run done again: `wrong` says what differs, `skipped` why it could not be run here; both None: it holds."""

    run: str
    wrong: str | None = None
    skipped: str | None = None


def masked(line: str | None) -> str | None:
    """A line without what differs from run to run: numbers, addresses, paths."""
    if line is None:
        return None
    for pattern, instead in _MASKS:
        line = pattern.sub(instead, line)
    return line.strip()


def ending(event: Mapping[str, Any]) -> str:
    """The class of an end: the status and whether a code or a signal ended it (128 + n is a signal)."""
    code, number = event.get("exit_code"), event.get("signal")
    if number is not None or (code is not None and code > 128):
        return f"{event['status']} by signal {number if number is not None else int(code or 0) - 128}"
    return f"{event['status']} with {'no code' if code is None else 'a code'}"


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """The captured cases below a folder."""
    for file in case_files.case_files(folder):
        for line in case_files.read_lines(file):
            yield json.loads(line)


def choose(
    captured: Iterable[Mapping[str, Any]], plans: Sequence[Plan], count: int, *, cheap: bool, seed: int | None
) -> list[tuple[Mapping[str, Any], Plan]]:
    """So many captured cases with their plans, at random; `cheap`: only those that need no heavy framework."""
    by_run = {f"{plan.id}#{number}": plan for plan in plans for number in plan.seeds}
    pairs = [
        (case, by_run[case["provenance"]["run"]])
        for case in captured
        if case["provenance"].get("run") in by_run and (not cheap or by_run[case["provenance"]["run"]].cheap)
    ]
    random.Random(seed).shuffle(pairs)
    return pairs[:count]


def again(lab: capture.Lab, case: Mapping[str, Any], plan: Plan, tries: int = 3) -> Compared:
    """Run a captured case's plan again and compare; where ranks race, up to so many times until it is as it was."""
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
