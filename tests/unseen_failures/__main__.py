"""Failures for measuring only: `python -m tests.unseen_failures list|capture|write|spoil FILE`.

`capture` runs the declared failures and adds their cases to a file, `write` divides the file into the two halves of
`tests/data/unseen_failures`, and `spoil` writes the labelled half with wrong labels, one in ten.
"""

import argparse
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.faultlab import capture, case_files, cases, induced_faults
from tests.faultlab.program import Plan
from tests.unseen_failures import declarations

DATA: Final = Path(__file__).parents[1] / "data" / "unseen_failures"
HALVES: Final = ("labels", "tests")
_SEED: Final = 19
_WRONG_SHARE: Final = 0.1
# The index of packages that a build tool names by itself, and temporary folders of services.
_PLACES: Final = (
    (re.compile(r"(?<=Updating )[\w-]+(?:\.[\w-]+)*\.(?:org|io|com)(?= index)"), "packages.example.org"),
    (re.compile(r"/tmp/pg\w{4}\b"), "/var/lib/postgresql/15"),
)


def _without_places(text: str) -> str:
    for pattern, instead in _PLACES:
        text = pattern.sub(instead, text)
    return text


def captured(lab: capture.Lab, name: str, plan: Plan, gpus: int | None) -> dict[str, Any]:
    """Run a plan and return its case.

    Raises:
        NotAsDeclared: the run did not fail.
    """
    made = cases.case(lab.run(plan, 1))
    if made["event"]["status"] == "timeout" != plan.status:
        raise cases.NotAsDeclared(f"{name}: it reached its time limit")
    source = plan.family
    if gpus is not None:
        made["event"]["gpus"] = gpus
    provenance = {"origin": "captured", "program": source, "medium": "log", "when": made["provenance"]["when"]}
    return {**made, "id": f"unseen-{name}", "group": name, "kind": plan.kind, "provenance": provenance}


def halves(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Divide cases into two halves of about the same size; the cases of a source stay together."""
    by_source: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: str(row["id"])):
        by_source.setdefault(row["provenance"]["program"], []).append(row)
    order = sorted(by_source)
    random.Random(_SEED).shuffle(order)
    found: dict[str, list[dict[str, Any]]] = {half: [] for half in HALVES}
    for source in order:
        smaller = min(HALVES, key=lambda half: len(found[half]))
        found[smaller] += by_source[source]
    return found


def _capture(chosen: Sequence[str], output: Path) -> int:
    plans, bad = declarations.load(), 0
    done = {json.loads(line)["group"] for line in case_files.read_lines(output)} if output.exists() else set()
    with output.open("a", encoding="utf-8") as file:
        for name, (plan, gpus) in plans.items():
            if name in done or (chosen and not any(re.search(pattern, name) for pattern in chosen)):
                continue
            try:
                file.write(cases.line_of(captured(capture.Lab(), name, plan, gpus)) + "\n")
                file.flush()
            except (cases.NotAsDeclared, induced_faults.Impossible, OSError) as error:
                bad += 1
                print(f"left out: {name}: {error}", file=sys.stderr)
    return 1 if bad else 0


def _labelled(output: Path) -> Iterator[dict[str, Any]]:
    """The captured cases that are still declared, with their declared labels; the group is the source."""
    plans = declarations.load()
    for line in case_files.read_lines(output):
        row = json.loads(line)
        if row["group"] in plans:
            for log in row["event"]["logs"]:
                log["tail"] = _without_places(log["tail"])
            yield row | {
                "group": row["provenance"]["program"],
                "labels": {**row["labels"], **plans[row["group"]][0].labels},
            }


def with_wrong_labels(rows: Sequence[dict[str, Any]], share: float, seed: int) -> list[dict[str, Any]]:
    """Return the cases with a share of labels replaced by those of a random case of another side."""
    draw = random.Random(seed)
    chosen = set(draw.sample(range(len(rows)), round(share * len(rows))))
    found = []
    for number, row in enumerate(rows):
        others = [one["labels"] for one in rows if one["labels"]["side"] not in row["labels"]["side_ok"]]
        found.append(row | {"labels": draw.choice(others)} if number in chosen else row)
    return found


def _spoil(output: Path, share: float, seed: int) -> int:
    rows = [json.loads(line) for line in case_files.read_lines(DATA / "labels.jsonl.zst")]
    case_files.write_lines(output, map(cases.line_of, with_wrong_labels(rows, share, seed)))
    return 0


def _write(output: Path) -> int:
    for half, rows in halves(_labelled(output)).items():
        DATA.mkdir(exist_ok=True)
        case_files.write_lines(DATA / f"{half}.jsonl.zst", map(cases.line_of, rows))
        print(half, len(rows), "cases of", len({row["provenance"]["program"] for row in rows}), "sources")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if a run did not fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.unseen_failures", description=__doc__)
    parser.add_argument("command", choices=("list", "capture", "write", "spoil"))
    parser.add_argument(
        "output", type=Path, nargs="?", default=Path("unseen.jsonl"), help="file of captured cases (.jsonl)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the wrong labels")
    parser.add_argument("pattern", nargs="*", help="regex on source.case")
    args = parser.parse_args(argv)
    if args.command == "list":
        print("\n".join(declarations.load()))
        return 0
    if args.command == "spoil":
        return _spoil(args.output, _WRONG_SHARE, args.seed)
    return _write(args.output) if args.command == "write" else _capture(args.pattern, args.output)


if __name__ == "__main__":
    os.umask(0o022)
    raise SystemExit(main())
