"""`make chaos`: random faults on a real broker, PostgreSQL and worker, then kills of hooks and service.

Every event has to be stored exactly once, and every request done at most once. The same seed gives the same faults.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.chaos.faults import ChaosRound, drawn, in_own_network
from tests.flows import hook_crashes
from tests.flows.crashes import Plan, labs

ISOLATED = "CHAOS_ISOLATED"


def main() -> int:
    """Run it and print the figures; 1 where an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hook-rounds", type=int, default=50, help="0: none")
    args = parser.parse_args()
    if ISOLATED not in os.environ and os.geteuid() == 0:
        command = in_own_network([sys.executable, "-m", "tests.chaos", *sys.argv[1:]])
        os.environ[ISOLATED] = "1"
        os.execvp(command[0], command)
    faults = drawn(args.seed, args.faults, isolated=ISOLATED in os.environ)
    with tempfile.TemporaryDirectory(prefix="faultline-chaos-") as folder, labs() as (broker, database):
        plan = Plan(args.events, faults, args.seed)  # type: ignore[arg-type]
        report = ChaosRound(plan, broker, database, Path(folder)).run()
        print(f"seed {args.seed}: {report.text()}", flush=True)
        wrong = bool(report.lost or report.twice or report.wrong)
        if args.hook_rounds:
            hooks = hook_crashes.Rounds(database, Path(folder) / "hooks", rounds=args.hook_rounds, seed=args.seed).run()
            print(hooks.text())
            wrong = wrong or bool(hooks.lost or hooks.twice)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
