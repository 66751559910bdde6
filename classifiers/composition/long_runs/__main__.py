"""Writes the long runs: `python -m classifiers.composition.long_runs [--seed N] [--runs N] [--most STEPS] [--out FILE]`."""

import argparse
from pathlib import Path

import orjson
import zstandard

from classifiers.composition.long_runs import failure_kinds
from classifiers.composition.long_runs.run import compose
from classifiers.data.labelled_cases import parse

SEED = "1"
RUNS = 5
MOST = 120
CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "long" / "runs.jsonl.zst"


def cases(seed: str = SEED, runs: int = RUNS, most: int = MOST) -> list[dict[str, object]]:
    """All runs: so many of each kind, of at most so many steps."""
    return [
        compose(kind, f"{kind.name}-{seed}-{number}", most) for kind in failure_kinds.read() for number in range(runs)
    ]


def main() -> int:
    """Compose and write; prints what there is."""
    parser = argparse.ArgumentParser(prog="python -m classifiers.composition.long_runs", description=__doc__)
    parser.add_argument("--seed", default=SEED, help=f"default {SEED}")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each kind; default {RUNS}")
    parser.add_argument("--most", type=int, default=MOST, help=f"steps of a run at most; default {MOST}")
    parser.add_argument("--out", type=Path, default=CORPUS, help="the packed file")
    args = parser.parse_args()
    made = cases(args.seed, args.runs, args.most)
    for raw in made:
        parse(raw, str(raw["id"]))
    data = b"".join(orjson.dumps(raw) + b"\n" for raw in made)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(zstandard.ZstdCompressor(level=19).compress(data))
    print(f"{len(made)} runs, {len(data):,} bytes, packed {args.out.stat().st_size:,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
