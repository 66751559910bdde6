"""`faultline replay`: store events from files without Kafka."""

import argparse

from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.files import check_readable
from service.clock import Clock
from service.formats import recognise
from service.messaging.file_replay import FileReplay

PROGRESS_EVERY_S = 2.0


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("replay", help="store events from files without Kafka")
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines, gzipped or not; - is standard input")
    parser.add_argument("--cluster", help="cluster name for records without one")
    parser.add_argument("--quiet", action="store_true", help="do not print progress")


def run(args: argparse.Namespace) -> int:
    """Store every event. Exit code 3: some lines became dead letters, or a file is truncated."""
    check_readable(args.files)
    services = compose.build(settings.read())
    try:
        services.store.check()
        services.store.log_bodies.check()
        progress = None if args.quiet else _Progress(services.clock)
        summary = FileReplay(
            recognise.parse, services.diagnose, clock=services.clock, cluster=args.cluster, progress=progress
        ).run(args.files)
    finally:
        services.close()
    for problem in summary.broken:
        output.problem(problem)
    output.line(summary.text())
    return exit_codes.SOME_LINES_BAD if summary.bad or summary.broken else exit_codes.OK


class _Progress:
    """Prints the number of lines read, at intervals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic() + PROGRESS_EVERY_S

    def __call__(self, lines: int) -> None:
        if self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + PROGRESS_EVERY_S
            output.line(f"{lines} lines", error=True)
