"""`faultline token create|list|revoke`: manage API tokens."""

import argparse
from datetime import datetime

from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.output import add_json_option, json_document
from service.clock import Clock
from service.db.session import Store
from service.errors import invalid
from service.people import api_tokens
from service.people.records import COMMAND_LINE
from service.people.repository.tokens import SCOPES


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("token", help="create, list or revoke API tokens")
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create a token; its secret is printed once and stored as a hash")
    create.add_argument("name")
    create.add_argument(
        "--purpose",
        "--scope",
        dest="scope",
        metavar="PURPOSES",
        required=True,
        help=f"comma separated: {', '.join(SCOPES)}. ingest: send events; publish: publish weekly reports; labels: "
        "import labels; hook: lease and answer the requests of one cluster; read: read everything but the settings; "
        "act: everything that an operator does, and publish, labels and hook; admin: everything",
    )
    create.add_argument(
        "--cluster", action="append", default=[], help="bind the token to this cluster; repeatable; required for hook"
    )
    create.add_argument("--team", action="append", default=[], help="bind the token to this team; repeatable")
    create.add_argument("--expires-in-days", type=int, metavar="DAYS", help="days until it expires; default: never")
    listing = actions.add_parser("list", help="list all tokens, without their secrets")
    add_json_option(listing)
    revoke = actions.add_parser("revoke", help="revoke a token at once")
    revoke.add_argument("name")


def run(args: argparse.Namespace) -> int:
    """Create, list or revoke tokens.

    Raises:
        InvalidInput: unknown scope.
        FaultlineError: the name is taken or not known, or the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check_for_changes()
        if args.action == "create":
            _create(services.store, services.clock, args)
        elif args.action == "revoke":
            api_tokens.revoke(services.store, args.name, actor=COMMAND_LINE)
            output.line(f'token "{args.name}" is revoked')
        else:
            _list(services.store, as_json=args.format == "json")
    finally:
        services.close()
    return 0


def _create(store: Store, clock: Clock, args: argparse.Namespace) -> None:
    wanted = {scope.strip() for scope in args.scope.split(",") if scope.strip()}
    days = args.expires_in_days
    if days is not None and not 1 <= days <= api_tokens.MOST_DAYS:
        raise invalid("--expires-in-days", f"1 to {api_tokens.MOST_DAYS}", str(days))
    _, secret = api_tokens.create(
        store, clock, args.name, wanted, actor=COMMAND_LINE, clusters=args.cluster, teams=args.team, days=days
    )
    output.line(f'token "{args.name}" created; its secret, shown only once:', error=True)
    output.line(secret)


def _list(store: Store, *, as_json: bool) -> None:
    with store.reading() as reading:
        tokens = reading.tokens.list()
    if as_json:
        names = ("name", "scopes", "clusters", "teams", "created_at", "last_used_at", "expires_at", "revoked_at")
        json_document([{name: getattr(token, name) for name in names} for token in tokens])
        return
    if not tokens:
        output.line("no tokens", error=True)
    for token in tokens:
        state = f"revoked {_day(token.revoked_at)}" if token.revoked_at else f"last used {_day(token.last_used_at)}"
        named = (("clusters", token.clusters), ("teams", token.teams))
        bound = [f"{name} {','.join(values)}" for name, values in named if values]
        ends = [f"expires {_day(token.expires_at)}"] if token.expires_at else []
        output.row(
            token.name, ",".join(sorted(token.scopes)), f"created {_day(token.created_at)}", state, *bound, *ends
        )


def _day(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
