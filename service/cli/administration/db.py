"""`faultline db upgrade|check`: upgrade the database schema, or check its version."""

import argparse
from contextlib import closing

from service import setting_texts, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.db.session import Store


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("db", help="upgrade or check the database schema")
    parser.add_argument(
        "action",
        choices=["upgrade", "check"],
        help="upgrade: create or upgrade the schema; check: fail if it is of another version",
    )


def run(args: argparse.Namespace) -> int:
    """Upgrade or check the database of FAULTLINE_DATABASE_URL.

    Raises:
        ConfigurationError: the URL is wrong, or (check) the schema is of another version.
        Unavailable: the database does not answer.
    """
    url = settings.read().database_url.get_secret_value()
    where = setting_texts.without_credentials(url)
    with closing(Store(url, pool_size=1)) as store:
        if args.action == "check":
            store.check()
            output.line(f"{where}: the schema is up to date")
            return 0
        before, after = store.upgrade()
    if before == after:
        output.line(f"{where}: already at revision {after}")
    else:
        output.line(f"{where}: {'created' if before is None else f'upgraded from {before}'}, now at revision {after}")
    return 0
