"""Prints composed cases as JSON lines: `python -m classifiers.composition [ID ...] [--seed N] [--long-runs]`.

Without an id it composes all kinds and prints only how many cases each label has. With `--long-runs` it prints the
composed runs of many ranks instead. A seed other than that of the training cases gives runs to measure with.
"""

import argparse
import sys
from collections import Counter

import orjson

from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.training_cases import SEED, long_run_objects
from classifiers.data.labelled_cases import AXES, check_ids, parse


def main() -> int:
    """Compose the kinds that were named, or all; 2 where no kind has such an id."""
    parser = argparse.ArgumentParser(prog="python -m classifiers.composition", description=__doc__)
    parser.add_argument("id", nargs="*", help="kinds to show; the beginning of an id is enough")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    parser.add_argument("--long-runs", action="store_true", help="print composed runs of many ranks and many steps")
    args = parser.parse_args()
    if args.long_runs:
        sys.stdout.buffer.writelines(orjson.dumps(raw) + b"\n" for raw in long_run_objects(args.seed))
        return 0
    chosen = [kind for kind in kinds.read() if not args.id or kind.id.startswith(tuple(args.id))]
    if not chosen:
        print("no kind has such an id", file=sys.stderr)
        return 2
    routine_lines = kinds.routine_lines()
    raws = [raw for kind in chosen for raw in compose(kind, routine_lines, args.seed)]
    check_ids([parse(raw, str(raw["id"])) for raw in raws])
    if args.id:
        sys.stdout.buffer.writelines(orjson.dumps(raw) + b"\n" for raw in raws)
    for axis in AXES:
        print(axis, dict(sorted(Counter(raw["labels"][axis] for raw in raws).items())), file=sys.stderr)
    print(f"{len(raws)} cases of {len(chosen)} kinds", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
