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
from tests.fuzz.rounds import Fuzz

GROWTH = 1.3  # resident memory at the end, as a multiple of that after the second round


def main() -> int:
    """Run it and print the figures; 1 where an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faultline-fuzz-") as folder:
        fuzz = Fuzz(Path(folder), args.seed, default_model_dir())
        result = fuzz.run(args.records, progress=lambda line: print(line, file=sys.stderr, flush=True))
        fuzz.close()
    print(f"seed {args.seed}, {time.monotonic() - began:.0f} s\n{result.text()}")
    settled = result.resident_kib[min(1, len(result.resident_kib) - 1)]
    return 1 if result.wrong or result.resident_kib[-1] > GROWTH * settled else 0


if __name__ == "__main__":
    sys.exit(main())
