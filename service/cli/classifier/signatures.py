"""`faultline signatures check|list|test LOG...`: check, list and try your own signatures."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from classifiers.extraction.scan import Scanner, tidy
from classifiers.signatures import CatalogueError, Signature
from service import settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.output import add_json_option, json_document
from service.errors import ConfigurationError
from service.explain import log_files, read_logs
from service.explain.read_logs import ReadLog
from service.signatures import operator_catalogue
from service.signatures.operator_catalogue import LayeredCatalogue, OperatorEntry

_SHOWN = 200  # characters of a line


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of a log that a signature matches; a line number below 0 counts from the end of the file."""

    file: str
    line: int
    signature: str
    own: bool
    text: str


@dataclass(frozen=True, slots=True)
class ListedSignature:
    """A signature of the list; `action` and `file` are None for a packaged one."""

    id: str
    origin: str
    role: str
    strength: str
    causes: Mapping[str, float]
    label: str
    action: str | None
    file: str | None


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "signatures",
        help="check, list or try your own signatures",
        description="Own signatures are TOML files in the folder FAULTLINE_SIGNATURES_DIR.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="check the files: format, examples, near misses")
    listing = actions.add_parser("list", help="list the signatures in use")
    listing.add_argument("--packaged", action="store_true", help="the packaged ones too")
    add_json_option(listing)
    test = actions.add_parser("test", help="print the lines of a log that your signatures match")
    test.add_argument("log", nargs="+", help="a log, plain or compressed; a folder of logs; - for standard input")
    test.add_argument("--packaged", action="store_true", help="lines that packaged signatures match too")
    add_json_option(test)
    for one in (check, listing, test):
        one.add_argument("--dir", type=Path, help="the folder of your signatures (FAULTLINE_SIGNATURES_DIR)")


def run(args: argparse.Namespace) -> int:
    """Check, list or try the signatures.

    Raises:
        ConfigurationError: no folder is given, a file in it is wrong, or a log can't be read.
    """
    folder = args.dir or settings.read().signatures_dir
    if folder is None and not getattr(args, "packaged", False):
        raise ConfigurationError("no folder of signatures: give --dir, or set FAULTLINE_SIGNATURES_DIR")
    try:
        layered = operator_catalogue.packaged_only() if folder is None else operator_catalogue.read(folder)
    except CatalogueError as error:
        raise ConfigurationError(str(error)) from None
    if args.action == "check" and folder is not None:
        return _check(folder, layered)
    if args.action == "list":
        return _list(layered, packaged=args.packaged, as_json=args.format == "json")
    return _test(layered, args.log, packaged=args.packaged, as_json=args.format == "json")


def _check(folder: Path, layered: LayeredCatalogue) -> int:
    files = len(operator_catalogue.files_of(folder))
    replaced = sum(one.replaces for one in layered.own.values())
    more = f", {replaced} of them in place of packaged ones" if replaced else ""
    entries = "signature" if len(layered.own) == 1 else "signatures"
    output.line(
        f"{folder}: {len(layered.own)} {entries} in {files} {'file' if files == 1 else 'files'}{more}: no problem"
    )
    return exit_codes.OK


def _list(layered: LayeredCatalogue, *, packaged: bool, as_json: bool) -> int:
    entries = [one for one in layered.catalogue.entries if packaged or one.id in layered.own]
    rows = [_listed(one, layered.own.get(one.id)) for one in entries]
    if as_json:
        json_document(rows)
        return exit_codes.OK
    for row in rows:
        causes = "/".join(list(row.causes)[:3]) or "-"
        output.line(f"{row.id:40} {row.origin:17} {row.role:11} {causes:14} {row.label}")
    return exit_codes.OK


def _listed(entry: Signature, own: OperatorEntry | None) -> ListedSignature:
    origin = "packaged" if own is None else "replaces packaged" if own.replaces else "own"
    return ListedSignature(
        id=entry.id,
        origin=origin,
        role=entry.role,
        strength=entry.strength,
        causes=entry.causes,
        label=entry.title,
        action=None if own is None else own.action,
        file=None if own is None else own.file,
    )


def _test(layered: LayeredCatalogue, names: Sequence[str], *, packaged: bool, as_json: bool) -> int:
    catalogue = layered.catalogue if packaged else layered.own_only()
    scanner = Scanner(catalogue)
    logs = read_logs.read(log_files.find(names))
    hits = [hit for log in logs for hit in _hits(log, scanner, layered)]
    if as_json:
        json_document(hits)
        return exit_codes.OK
    for hit in hits:
        output.line(f"{hit.file}:{hit.line}: {hit.signature}: {tidy(hit.text, _SHOWN)}")
    count = len({hit.signature for hit in hits})
    matches = "1 match" if len(hits) == 1 else f"{len(hits)} matches"
    output.line(f"{matches} of {count} {'signature' if count == 1 else 'signatures'}", error=True)
    return exit_codes.OK


def _hits(log: ReadLog, scanner: Scanner, layered: LayeredCatalogue) -> Iterator[Hit]:
    windows = log.windows or ((0, 1),)
    for line in scanner.scan(log.text):
        offset, first = next(one for one in reversed(windows) if one[0] <= line.offset)
        number = first + log.text.count("\n", offset, line.offset)
        for entry in line.hits:
            yield Hit(log.name, number, entry.id, entry.id in layered.own, line.text)
