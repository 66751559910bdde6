"""Prints composed cases as JSON lines: `python -m classifiers.composition [ID ...] [--seed N]`.

Without an id it composes all kinds and prints only how many cases each label has.
"""

import argparse
import sys
from collections import Counter

import orjson

from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.training_cases import SEED
from classifiers.data.labelled_cases import AXES, check_ids, parse


def main() -> int:
    """Compose the kinds that were named, or all; 2 where no kind has such an id."""
    parser = argparse.ArgumentParser(prog="python -m classifiers.composition", description=__doc__)
    parser.add_argument("id", nargs="*", help="kinds to show; the beginning of an id is enough")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    args = parser.parse_args()
    chosen = [kind for kind in kinds.read() if not args.id or kind.id.startswith(tuple(args.id))]
    if not chosen:
        print("no kind has such an id", file=sys.stderr)
        return 2
    scenery = kinds.scenery()
    raws = [raw for kind in chosen for raw in compose(kind, scenery, args.seed)]
    check_ids([parse(raw, str(raw["id"])) for raw in raws])
    if args.id:
        sys.stdout.buffer.writelines(orjson.dumps(raw) + b"\n" for raw in raws)
    for axis in AXES:
        print(axis, dict(sorted(Counter(raw["labels"][axis] for raw in raws).items())), file=sys.stderr)
    print(f"{len(raws)} cases of {len(chosen)} kinds", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
