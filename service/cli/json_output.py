"""The `--json` option of commands that print a table by default."""

import argparse
import sys
from typing import Any

import orjson


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, and `--format text|json` as the same choice in the spelling of other commands."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--json", dest="format", action="store_const", const="json", help="print JSON")
    choice.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def print_json(value: Any) -> None:
    """Print a value as indented JSON; dataclasses become objects, times become RFC 3339 text in UTC."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    sys.stdout.write(orjson.dumps(value, option=options, default=_plain).decode())


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value)
