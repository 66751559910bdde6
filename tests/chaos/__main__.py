"""`make chaos`: random faults on a real broker, PostgreSQL and worker, then kills of hooks and service.

Every event has to be stored exactly once, and every request done at most once. Meanwhile the rates of pages are
compared with the rows, and at the end the conditions of alerts have to hold. The same seed gives the same faults.
"""

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.chaos import network, redundancy
from tests.chaos.faults import ChaosRound, drawn, in_own_network
from tests.chaos.outside_view import CONDITIONS
from tests.chaos.plans import Plan
from tests.flows import hook_crashes
from tests.flows.crashes import labs
from tests.labs import kafka, postgres
from tests.labs.kafka_cluster import broker_cluster
from tests.labs.object_storage import S3Server, s3_server
from tests.labs.postgres_pair import postgres_pair

ISOLATED = "CHAOS_ISOLATED"


def main() -> int:
    """Run it and print the figures; 1 where an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hook-rounds", type=int, default=50, help="0: none")
    parser.add_argument("--log-storage", action="store_true", help="logs in a bucket, whose server is stopped too")
    parser.add_argument("--replica", action="store_true", help="only fail-overs to a replica of PostgreSQL")
    parser.add_argument("--brokers", type=int, default=1, help="3: kills of single nodes of a Kafka cluster")
    parser.add_argument("--network", action="store_true", help="only bad links: delay, loss, stalls, resets")
    args = parser.parse_args()
    if args.network:
        return _network(args)
    if ISOLATED not in os.environ and os.geteuid() == 0:
        command = in_own_network([sys.executable, "-m", "tests.chaos", *sys.argv[1:]])
        os.environ[ISOLATED] = "1"
        os.execvp(command[0], command)
    if args.replica or args.brokers > 1:
        return _redundant(args)
    faults = drawn(args.seed, args.faults, isolated=ISOLATED in os.environ, log_storage=args.log_storage)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="faultline-chaos-"))
        broker, database = stack.enter_context(labs())
        bucket, settings = _bucket(stack, Path(folder)) if args.log_storage else (None, {})
        plan = Plan(args.events, faults, args.seed, settings=settings, alarms=list(CONDITIONS))  # type: ignore[arg-type]
        report = ChaosRound(plan, broker, database, Path(folder), bucket).run()
        print(f"seed {args.seed}: {report.text()}", flush=True)
        wrong = bool(report.lost or report.twice or report.wrong)
        if args.hook_rounds:
            hooks = hook_crashes.Rounds(database, Path(folder) / "hooks", rounds=args.hook_rounds, seed=args.seed).run()
            print(hooks.text())
            wrong = wrong or bool(hooks.lost or hooks.twice)
    return int(wrong)


def _network(args: argparse.Namespace) -> int:
    """A round with a bad link before each server; 1 where an invariant is broken."""
    plan = Plan(args.events, network.drawn(args.seed, args.faults), args.seed)  # type: ignore[arg-type]
    with (
        tempfile.TemporaryDirectory(prefix="faultline-chaos-") as folder,
        network.linked_labs(args.seed) as (broker, database, links),
    ):
        report = network.NetworkRound.between(plan, broker, database, Path(folder), links).run()
    print(f"seed {args.seed}: {report.text()}", flush=True)
    return int(bool(report.lost or report.twice or report.wrong))


def _redundant(args: argparse.Namespace) -> int:
    """A round with redundant servers; 1 where an invariant is broken."""
    faults = redundancy.drawn(args.seed, args.faults, replica=args.replica, brokers=args.brokers > 1)
    plan = Plan(args.events, faults, args.seed)  # type: ignore[arg-type]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faultline-chaos-")))
        cluster = stack.enter_context(broker_cluster(args.brokers)) if args.brokers > 1 else None
        pair = stack.enter_context(postgres_pair()) if args.replica else None
        # A cluster and a pair have what a round uses of a single server: address, topics, URLs.
        broker: Any = cluster or stack.enter_context(kafka.broker())
        database: Any = pair or stack.enter_context(postgres.server())
        report = redundancy.RedundancyRound(plan, broker, database, folder, pair=pair, cluster=cluster).run()
    print(f"seed {args.seed}: {report.text()}", flush=True)
    return int(bool(report.lost or report.twice or report.wrong))


def _bucket(stack: ExitStack, folder: Path) -> tuple[S3Server, dict[str, str]]:
    """A server with a bucket, and the worker's settings; this process reads the bucket too."""
    (folder / "s3").mkdir()
    server = stack.enter_context(s3_server(folder / "s3"))
    os.environ |= server.environment
    return server, {"FAULTLINE_LOG_STORE_URL": server.bucket("logs"), "FAULTLINE_LOG_STORE_ALLOW_HTTP": "true"}


if __name__ == "__main__":
    sys.exit(main())
