"""`faultline report --week 2026-W47`: the weekly quality report as text, Markdown, HTML, PDF or JSON."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from service import compose, settings, weeks
from service.reports import html, markdown, pdf
from service.reports.document import Report

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("report", help="the weekly quality report")
    parser.add_argument("--week", help=f"{weeks.EXPECTED}; default: the last week that is over")
    shape = parser.add_mutually_exclusive_group()
    for name, said in (("html", "one HTML file"), ("pdf", "PDF"), ("md", "Markdown (default)"), ("json", "JSON")):
        shape.add_argument(f"--{name}", dest="shape", action="store_const", const=name, help=said)
    parser.add_argument("--output", type=Path, help="write to this file instead of standard output")
    parser.add_argument("--publish", action="store_true", help="freeze the week as it is now, and tell who is to know")
    parser.set_defaults(shape="md")


def run(args: argparse.Namespace) -> int:
    """Print the report.

    Raises:
        InvalidInput: no such week.
        Conflict: --publish of a week that is not over.
        Unavailable: the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        week = weeks.parse(args.week) if args.week else weeks.last_complete(services.clock.now(), services.zone)
        report = services.reports.publish(week, "the command line") if args.publish else services.reports.read(week)
    finally:
        services.close()
    content = rendered(report, args.shape)
    if args.output is not None:
        args.output.write_bytes(content)
        print(f"{args.output}: {report.title}, version {report.version}", file=sys.stderr)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return 0


def rendered(report: Report, shape: str) -> bytes:
    """The report in one of its four shapes."""
    if shape == "pdf":
        return pdf.render(report)
    if shape == "json":
        return orjson.dumps(report.to_wire(), option=orjson.OPT_INDENT_2) + b"\n"
    return (html.render(report) if shape == "html" else markdown.render(report)).encode()
