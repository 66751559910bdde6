"""`faultline labels export|import|undo`: corrections of verdicts as labelled cases, and their withdrawal."""

import argparse
from codecs import BOM_UTF8
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.classifier import retrain
from service.cli.files import check_readable, opened_output
from service.contracts.event import MAX_EVENT_BYTES
from service.errors import InvalidInput
from service.feedback import label_export, withdrawal
from service.formatting import with_noun
from service.messaging import json_lines
from service.people.records import COMMAND_LINE


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("labels", help="export or import corrections of verdicts as labelled cases")
    actions = parser.add_subparsers(dest="action", required=True)
    export = actions.add_parser(
        "export",
        help="print labelled-case/1 lines, one a failure, as read by `faultline train --add`",
        description="Secrets are redacted. Left out: the protected set, labels in dispute, and labels "
        "that wait for a second person.",
    )
    export.add_argument("--output", type=Path, help="the file (default: standard output)")
    export.add_argument("--golden", action="store_true", help="only the protected set")
    export.add_argument("--no-golden", action="store_true", help="everything but the protected set (default)")
    taken = actions.add_parser("import", help="add labels made elsewhere to the failures of the same jobs here")
    undo = actions.add_parser("undo", help="withdraw one person's labels; the verdicts before them are current again")
    undo.add_argument("--who", required=True, help="the person")
    undo.add_argument("--since", required=True, help="an ISO 8601 date or time; no zone: UTC")
    undo.add_argument(
        "--retrain", action="store_true", help="then learn without them, and print the gate's answer and what changes"
    )
    taken.add_argument("file", help="labelled-case/1 lines, - for standard input")


def run(args: argparse.Namespace) -> int:
    """Export, import or withdraw. Exit code 3: some lines of an import were bad; the others were imported.

    Raises:
        FaultlineError: the database does not answer, or a file can't be read or written.
    """
    if args.action == "import":
        check_readable([args.file])
    services = compose.build(settings.read())
    try:
        services.store.check_for_changes()
        if args.action == "undo":
            return _undo(services, args.who, args.since, learn=args.retrain)
        return _export(services, args) if args.action == "export" else _import(services, args.file)
    finally:
        services.close()


def _export(services: compose.ProcessServices, args: argparse.Namespace) -> int:
    if args.golden and args.no_golden:
        raise InvalidInput("--golden and --no-golden: expected one of them at most")
    count = 0
    with opened_output(args.output, private=True) as out:
        for case in label_export.cases(services.store, golden=args.golden):
            out.write(output.json_line(case))
            count += 1
    output.line(f"{count} labelled {'case' if count == 1 else 'cases'}", error=True)
    return 0


def _undo(services: compose.ProcessServices, actor: str, since: str, *, learn: bool) -> int:
    try:
        start = datetime.fromisoformat(since)
    except ValueError:
        raise InvalidInput(f"--since: expected an ISO 8601 date or time, got {since[:40]}") from None
    start = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
    done = withdrawal.withdraw_labels(
        services.store, actor, start, actor=COMMAND_LINE, revised=services.automation.withdraw_unsupported
    )
    if done.golden:
        output.line(f"labels of {actor} that stay, since they are part of the golden set: {done.golden}")
    if not done.labels:
        output.line(f"no label of {actor} since {since}: nothing is withdrawn")
        return exit_codes.OK
    verdicts = (
        f"{with_noun(done.verdicts, 'verdict')} returned to {'its' if done.verdicts == 1 else 'their'} earlier version"
    )
    output.line(f"{with_noun(done.labels, 'label')} of {actor} withdrawn, {verdicts}")
    if learn:
        return retrain.learn(services)
    output.line("run faultline retrain to learn without them")
    return exit_codes.OK


def _import(services: compose.ProcessServices, file: str) -> int:
    unreadable: list[str] = []
    found = lines_of(file, unreadable)
    done = label_export.import_labels(services.store, services.feedback, found, actor=COMMAND_LINE)
    wrong = (*unreadable, *done.wrong)
    for problem in wrong:
        output.problem(problem)
    for place in done.elsewhere:
        output.problem(f"{place}: its job is not stored here")
    held = f" ({done.waiting} of them wait for a second person)" if done.waiting else ""
    output.line(
        f"{done.taken} taken{held}, {len(done.elsewhere)} of jobs not stored here, {len(wrong)} wrong", error=True
    )
    return exit_codes.SOME_LINES_BAD if wrong else exit_codes.OK


def lines_of(file: str, unreadable: list[str]) -> Iterator[tuple[str, Any]]:
    """The place and value of each line; lines that are no JSON are added to `unreadable`."""
    for line in json_lines.lines(file):
        place = f"{file}:{line.number}"
        if line.too_long:
            unreadable.append(f"{place}: a line of more than {MAX_EVENT_BYTES:,} bytes")
            continue
        try:
            yield place, orjson.loads(line.value.removeprefix(BOM_UTF8) if line.number == 1 else line.value)
        except orjson.JSONDecodeError as error:
            unreadable.append(f"{place}: expected JSON in UTF-8 ({error})"[:300])
