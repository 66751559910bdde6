"""`faultline config show`: print the effective settings, with secrets hidden."""

import argparse

from classifiers.redaction import redact
from service import setting_texts, settings
from service.cli import output
from service.cli.argument_types import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("config", help="print the effective settings")
    parser.add_argument("action", choices=["show"])


def run(args: argparse.Namespace) -> int:
    """Print NAME=value, one setting a line."""
    del args
    for name, value in settings.read().shown().items():
        output.line(redact(f"{setting_texts.PREFIX}{name.upper()}={value}"))
    return 0
