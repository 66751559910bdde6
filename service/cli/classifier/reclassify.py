"""`faultline reclassify --since 90d [--where KEY=VALUE] [--model ID] [--scheduler ADDRESS]`: classify again."""

import argparse
import dataclasses
from datetime import timedelta
from typing import Any, Final

from classifiers.data.labelled_cases import codes_of
from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers, between, positive, span
from service.cli.classifier import reclassify_on_dask
from service.cli.output import add_json_option, json_document
from service.errors import Conflict, InvalidInput
from service.failures.records import FailureFilter
from service.learning.reclassification import IDS_OF_RANGE, RunOptions
from service.learning.records import PACKAGED, Reclassified

_KEYS: Final = ("side", "cause", "symptom", "category", "cluster", "queue", "team", "user", "node", "group", "status")
_CODES: Final = frozenset({"side", "cause", "symptom", "category"})
_SHOWN_MOVES: Final = 20


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "reclassify",
        help="classify stored failures again",
        description="Stores new versions only where something changed; verdicts of people stay. An interrupted run "
        "continues where it stopped when it is started again in the same way.",
    )
    parser.add_argument("--since", type=span, default=timedelta(days=90), help="how far back: 90d (default), 36h")
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE", help="one of " + ", ".join(_KEYS) + "; repeatable"
    )
    parser.add_argument("--model", help="the id of a site layer, or packaged (default: the model in use)")
    parser.add_argument("--dry-run", action="store_true", help="count the changes, store nothing")
    parser.add_argument("--notify", action="store_true", help="send failure.revised to hooks and channels")
    parser.add_argument(
        "--rate", type=positive, help="failures a second at most (default: 50; with --scheduler as fast as its workers)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="divide the work between the workers of this Dask scheduler, such as tcp://10.0.0.5:8786; each worker "
        "needs this version of Faultline, its model and FAULTLINE_DATABASE_URL",
    )
    parser.add_argument(
        "--range-size",
        type=between(1, 1_000_000),
        default=IDS_OF_RANGE,
        metavar="N",
        help=f"with --scheduler: failures that a worker classifies at once (default: {IDS_OF_RANGE})",
    )
    add_json_option(parser)


def filters_of(pairs: list[str]) -> dict[str, Any]:
    """Return the filters of `--where`.

    Raises:
        InvalidInput: an unknown key, one that is given twice, an unknown code, or no value.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in _KEYS or not value:
            raise InvalidInput(f"--where: expected KEY=VALUE with one of {', '.join(_KEYS)}, got {pair[:80]}")
        if key in found:
            raise InvalidInput(f"--where: expected each key once, got {key} twice")
        if key in _CODES and value not in codes_of(key):
            raise InvalidInput(f"--where: expected {key}= with one of {', '.join(codes_of(key))}, got {value[:40]}")
        found[key] = value
    return found


def run(args: argparse.Namespace) -> int:
    """Classify again, and print the changes.

    Raises:
        FaultlineError: the database does not answer, there is no such model, or another process runs the same.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        filters = dataclasses.replace(FailureFilter(since=services.clock.now() - args.since), **filters_of(args.where))
        layer = _layer(services, args.model, dry_run=args.dry_run)
        options = RunOptions(args.dry_run, args.notify, args.rate, _progress)
        if args.scheduler is None:
            work = reclassify_on_dask.reclassification(services, layer)
            done = work.run(filters, options, wanted=repr((args.since, sorted(args.where))))
        else:
            wanted = repr((args.since, sorted(args.where), args.range_size))
            done = reclassify_on_dask.run(
                services,
                filters,
                layer,
                args.scheduler,
                wanted=wanted,
                size=args.range_size,
                options=options,
            )
    finally:
        services.close()
    if args.format == "json":
        moves = [{"before": old, "after": new, "failures": count} for (old, new), count in done.moves.most_common()]
        json_document({**dataclasses.asdict(done), "moves": moves, "dry_run": args.dry_run})
        return exit_codes.OK
    output.document("\n".join(lines(done, dry_run=args.dry_run)))
    return exit_codes.OK


def lines(done: Reclassified, *, dry_run: bool) -> list[str]:
    """The result in words."""
    verb = "would change" if dry_run else "changed"
    found = [
        (
            f"{done.read} failures classified again, {done.changed} {verb}; {done.people} judged by people stay, "
            f"{done.unreadable} without stored logs"
        )
    ]
    for (old, new), count in done.moves.most_common(_SHOWN_MOVES):
        found.append(f"{count:8d}  {old} to {new}" if old != new else f"{count:8d}  {old}: other details or confidence")
    return found


def _layer(services: compose.ProcessServices, name: str | None, *, dry_run: bool) -> str:
    if name == PACKAGED:
        return name
    with services.store.reading() as reading:
        if name is not None:
            if not dry_run and reading.site_layers.get(name).gate.decision == "refuse":
                raise Conflict(f"{name} was refused, so that it changes no verdict; a --dry-run counts changes")
            return name
        layer = services.retraining.promotions.in_use(reading)
        return PACKAGED if layer is None else layer.id


def _progress(done: Reclassified) -> None:
    output.line(f"{done.read} classified again, {done.changed} changed", error=True)
