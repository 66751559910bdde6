"""`make fuzz`: mutated records of every format through the consumer, classifier and database.

Every record has to be stored, skipped or a dead letter, none twice, and memory has to stay flat.
"""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from service.settings import default_model_dir
from tests.fuzz.rounds import ROUND, Fuzz, Result

PART = 10_000  # records of one database; each part has the seed of the one before plus one
GROWTH = 1.3  # resident memory at the end of a part, as a multiple of that after its first round or at the first end


def main() -> int:
    """Run it and print the figures; 1 where an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="stop after this time (default: a day)")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    began = time.monotonic()
    result, growth = Result(), 1.0
    for part in range(-(-args.records // PART)):
        with tempfile.TemporaryDirectory(prefix="faultline-fuzz-") as folder:
            fuzz = Fuzz(Path(folder), args.seed + part, default_model_dir(), result)
            fuzz.run(min(PART, args.records - part * PART))
            fuzz.close()
        rounds = result.resident_kib[part * (PART // ROUND) :]
        growth = max(growth, rounds[-1] / rounds[0])
        print(f"{result.records:,} records, {len(result.wrong)} wrong", file=sys.stderr, flush=True)
        if time.monotonic() - began > 60 * args.minutes:
            break
    print(f"seeds from {args.seed}, {time.monotonic() - began:.0f} s\n{result.text()}")
    over_all = result.resident_kib[-1] / result.resident_kib[: PART // ROUND][-1]
    print(f"memory within a part: {growth - 1:+.1%}; from the first part to the last: {over_all - 1:+.1%}")
    return 1 if result.wrong or max(growth, over_all) > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
