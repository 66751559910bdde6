"""`faultline replay`: read events from files straight into the store."""

import argparse
import sys
from typing import TYPE_CHECKING

from service import compose, settings
from service.clock import Clock
from service.formats import recognise
from service.messaging.file_replay import Replay

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

SOME_BAD = 3
PROGRESS_EVERY_S = 2.0


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("replay", help="read events from files straight into the store")
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines, gzipped or not; - is standard input")
    parser.add_argument("--cluster", help="the cluster of records that carry none")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Store every event; exit code 3: some lines became dead letters, or a file could not be read to its end."""
    services = compose.build(settings.read())
    try:
        services.store.check()
        progress = None if args.quiet else _Progress(services.clock)
        summary = Replay(
            recognise.parse, services.diagnose, clock=services.clock, cluster=args.cluster, progress=progress
        ).run(args.files)
    finally:
        services.close()
    for problem in summary.broken:
        print(f"faultline: {problem}", file=sys.stderr)
    print(summary.text())
    return SOME_BAD if summary.bad or summary.broken else 0


class _Progress:
    """Says now and then how far it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic() + PROGRESS_EVERY_S

    def __call__(self, lines: int) -> None:
        if self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + PROGRESS_EVERY_S
            print(f"{lines} lines", file=sys.stderr, flush=True)
