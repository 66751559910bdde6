"""Writes the composed corpus: `python -m classifiers.composition [--seed N] [--out FOLDER]`."""

import argparse
import collections
from pathlib import Path

import orjson

from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.data.labelled_cases import check_ids, parse

SEED = 7
CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "composed"


def main() -> int:
    """Compose every kind and write one file a data file; prints what there is."""
    parser = argparse.ArgumentParser(prog="python -m classifiers.composition", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    parser.add_argument("--out", type=Path, default=CORPUS, help="folder of the corpus' composed part")
    args = parser.parse_args()
    scenery = kinds.scenery()
    files: dict[str, list[bytes]] = collections.defaultdict(list)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    cases = []
    for kind in kinds.read():
        for raw in compose(kind, scenery, args.seed):
            cases.append(parse(raw, raw["id"]))
            files[kind.file].append(orjson.dumps(raw))
            for axis in ("side", "cause", "category", "symptom", "retry"):
                counts[axis][raw["labels"][axis]] += 1
    check_ids(cases)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (args.out / f"{name}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    for axis, counted in counts.items():
        print(axis, dict(sorted(counted.items())))
    print(f"{len(cases)} cases of {len({case.kind for case in cases})} kinds in {len(files)} files")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
