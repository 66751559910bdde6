"""`faultline labels export|import`: corrections of verdicts as labelled cases, for training or sharing."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from service import compose, settings
from service.cli import exit_codes, output
from service.cli.files import check_readable, opened_output, read_input
from service.errors import InvalidInput
from service.feedback import label_export

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


BY = "the command line"


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("labels", help="export or import corrections of verdicts as labelled cases")
    actions = parser.add_subparsers(dest="action", required=True)
    export = actions.add_parser(
        "export",
        help="print labelled-case/1 lines, one a failure, as read by `faultline train --add`",
        description="Secrets are redacted. Failures that people disagree about are left out.",
    )
    export.add_argument("--output", type=Path, help="the file (default: standard output)")
    export.add_argument("--golden", action="store_true", help="only the protected set")
    export.add_argument("--no-golden", action="store_true", help="everything but the protected set, for training")
    taken = actions.add_parser("import", help="add labels made elsewhere to the failures of the same jobs here")
    taken.add_argument("file", help="labelled-case/1 lines, - for standard input")


def run(args: argparse.Namespace) -> int:
    """Export or import. Exit code 3: some lines of an import were bad; the others were imported.

    Raises:
        FaultlineError: the database does not answer, or a file can't be read or written.
    """
    if args.action == "import":
        check_readable([args.file])
    services = compose.build(settings.read())
    try:
        services.store.check()
        return _export(services, args) if args.action == "export" else _import(services, args.file)
    finally:
        services.close()


def _export(services: compose.Services, args: argparse.Namespace) -> int:
    if args.golden and args.no_golden:
        raise InvalidInput("--golden and --no-golden: expected one of them at most")
    wanted = True if args.golden else False if args.no_golden else None
    count = 0
    with opened_output(args.output) as out:
        for case in label_export.cases(services.store, golden=wanted):
            out.write(output.json_line(case))
            count += 1
    output.line(f"{count} labelled {'case' if count == 1 else 'cases'}", error=True)
    return 0


def _import(services: compose.Services, file: str) -> int:
    done = label_export.import_labels(services.store, services.feedback, _lines(file), who=BY)
    for problem in done.wrong:
        output.problem(problem)
    for place in done.elsewhere:
        output.problem(f"{place}: its job is not stored here")
    output.line(
        f"{done.taken} taken, {len(done.elsewhere)} of jobs not stored here, {len(done.wrong)} wrong", error=True
    )
    return exit_codes.SOME_LINES_BAD if done.wrong else exit_codes.OK


def _lines(file: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(read_input(file).splitlines(), 1):
        if line.strip():
            try:
                yield f"{file}:{number}", orjson.loads(line)
            except orjson.JSONDecodeError:
                yield f"{file}:{number}", None
