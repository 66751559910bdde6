"""`make soak`: 10,000 events, the worker killed twenty times, the broker once, the database restarted once.

Then 200 rounds of requests for the hooks, with hooks and service killed on the way.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos.plans import Plan, Trouble
from tests.flows import hook_crashes
from tests.flows.crashes import Round, labs


def main() -> int:
    """Run it and print the figures; 1 where an event was lost or stored twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.flows.soak", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20, help="of the worker, by -9")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hook-rounds", type=int, default=200)
    args = parser.parse_args()
    troubles: list[Trouble] = [*("member" if number % 2 else "worker" for number in range(args.kills))]
    troubles += ["broker", "database"]
    random.Random(args.seed).shuffle(troubles)
    with tempfile.TemporaryDirectory(prefix="faultline-soak-") as folder, labs() as (broker, database):
        plan = Plan(args.events, troubles, args.seed, args.processes)
        report = Round(plan, broker, database, Path(folder)).run()
        print(report.text(), flush=True)
        hooks = hook_crashes.Rounds(database, Path(folder) / "hooks", rounds=args.hook_rounds, seed=args.seed).run()
    print(hooks.text())
    return 1 if report.lost or report.twice or report.wrong or hooks.lost or hooks.twice else 0


if __name__ == "__main__":
    sys.exit(main())
