"""`faultline report --week 2026-W47`: the weekly quality report as text, Markdown, HTML, PDF or JSON."""

import argparse
from pathlib import Path

import orjson

from service import compose, settings, weeks
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.files import check_writable, write_output
from service.people.records import COMMAND_LINE
from service.reports import html, markdown, pdf, summary
from service.reports.document import Report
from service.reports.scope import scope_of

FORMATS = {"html": "one HTML file", "pdf": "PDF", "md": "Markdown (default)", "json": "JSON"}
FORMATS |= {"chat": "ten lines for a chat", "mail": "a mail with text and HTML"}


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("report", help="the weekly quality report")
    parser.add_argument("--week", help=f"{weeks.EXPECTED}; default: the last complete week")
    choice = parser.add_mutually_exclusive_group()
    for name, title in FORMATS.items():
        choice.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=title)
    choice.add_argument("--format", choices=tuple(FORMATS), help="the same choice, written as in other commands")
    parser.add_argument("--output", type=Path, help="write to this file instead of standard output")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="store the report permanently; the report of all jobs is sent to the endpoints that subscribe to it",
    )
    parser.add_argument("--cluster", help="only jobs of this cluster")
    parser.add_argument("--team", help="only jobs of this team")
    parser.set_defaults(format="md")


def run(args: argparse.Namespace) -> int:
    """Print the report.

    Raises:
        InvalidInput: there is no such week, or no job of the scope is known.
        ConfigurationError: the output file can't be written, or a setting is wrong.
        Conflict: --publish of a week that is not over.
        Unavailable: the database does not answer.
    """
    scope = scope_of(args.cluster, args.team)
    chosen = weeks.parse(args.week) if args.week else None
    check_writable(args.output)
    services = compose.build(settings.read())
    try:
        services.store.check()
        week = chosen or weeks.last_complete(services.clock.now(), services.zone)
        reports = services.reports
        by = COMMAND_LINE
        report = reports.publish(week, by, scope) if args.publish else reports.read(week, scope=scope)
    finally:
        services.close()
    write_output(args.output, rendered(report, args.format))
    if args.output is not None:
        output.line(f"{args.output}: {report.title}, version {report.version}", error=True)
    return 0


def rendered(report: Report, output_format: str) -> bytes:
    """Return the report in one of `FORMATS`."""
    if output_format == "pdf":
        return pdf.render(report)
    if output_format == "json":
        return orjson.dumps(report.to_wire(), option=orjson.OPT_INDENT_2) + b"\n"
    if output_format == "mail":
        return summary.mail(report)
    if output_format == "chat":
        return ("\n".join(summary.summary(report)) + "\n").encode()
    return (html.render(report) if output_format == "html" else markdown.render(report)).encode()
