"""`faultline labels export|import`: what people said of verdicts, as labelled cases to train on or to share."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from service import compose, settings
from service.errors import InvalidInput
from service.feedback import label_export

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

SOME_WRONG = 3


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("labels", help="export or import what people said of verdicts")
    actions = parser.add_subparsers(dest="action", required=True)
    export = actions.add_parser(
        "export",
        help="labelled-case/1, a line a failure: what `faultline train --add` reads",
        description="Secrets are redacted. What people disagree about is left out.",
    )
    export.add_argument("--output", type=Path, help="the file (default: standard output)")
    export.add_argument("--golden", action="store_true", help="only the protected set")
    export.add_argument("--no-golden", action="store_true", help="all but the protected set: what to train on")
    taken = actions.add_parser("import", help="put labels made elsewhere to the failures of the same jobs here")
    taken.add_argument("file", help="labelled-case/1 lines, - for standard input")


def run(args: argparse.Namespace) -> int:
    """Do what was asked. Exit code 3: some lines of an import were wrong; the others were taken.

    Raises:
        FaultlineError: no database, or a file that can't be read or written.
    """
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
    with _writing(args.output) as out:
        for case in label_export.cases(services.store, golden=wanted):
            out.write(orjson.dumps(case) + b"\n")
            count += 1
    print(f"{count} labelled {'case' if count == 1 else 'cases'}", file=sys.stderr)
    return 0


def _import(services: compose.Services, file: str) -> int:
    done = label_export.take(services.store, services.feedback, _lines(file))
    for said in done.wrong:
        print(f"faultline: {said}", file=sys.stderr)
    for said in done.elsewhere:
        print(f"faultline: {said}: its job is not stored here", file=sys.stderr)
    print(
        f"{done.taken} taken, {len(done.elsewhere)} of jobs not stored here, {len(done.wrong)} wrong", file=sys.stderr
    )
    return SOME_WRONG if done.wrong else 0


def _lines(file: str) -> Iterator[tuple[str, Any]]:
    try:
        lines = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from None
    for number, line in enumerate(lines.splitlines(), 1):
        if line.strip():
            try:
                yield f"{file}:{number}", orjson.loads(line)
            except orjson.JSONDecodeError:
                yield f"{file}:{number}", None


@contextmanager
def _writing(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        return
    try:
        with path.open("wb") as out:
            yield out
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
