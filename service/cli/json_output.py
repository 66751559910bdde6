"""The `--json` option of commands that print a table by default."""

import argparse
from typing import Any

from service.cli.output import json_document


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, and `--format text|json` as the same choice in the spelling of other commands."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--json", dest="format", action="store_const", const="json", help="print JSON")
    choice.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    json_document(value)
