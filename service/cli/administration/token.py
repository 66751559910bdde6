"""`faultline token create|list|revoke`: manage API tokens."""

import argparse
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from service import compose, settings
from service.cli.json_output import add_json_option, print_json
from service.db.session import Store
from service.people.repository.tokens import SCOPES

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


BY = "the command line"


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("token", help="create, list or revoke API tokens")
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create a token; its secret is printed once and stored as a hash")
    create.add_argument("name")
    create.add_argument(
        "--scope",
        required=True,
        help=f"comma separated: {', '.join(SCOPES)}. ingest: send events; read: read everything but the settings; "
        "act: resend dead letters and lease requests; admin: everything",
    )
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
        services.store.check()
        if args.action == "create":
            _create(services.store, args.name, args.scope)
        elif args.action == "revoke":
            with services.store.unit_of_work() as work:
                work.tokens.revoke(args.name)
                work.audit_log.append(BY, "token.revoked", f"token/{args.name}")
            print(f'token "{args.name}" is revoked')
        else:
            _list(services.store, as_json=args.format == "json")
    finally:
        services.close()
    return 0


def _create(store: Store, name: str, scopes: str) -> None:
    wanted = {scope.strip() for scope in scopes.split(",") if scope.strip()}
    with store.unit_of_work() as work:
        _, secret = work.tokens.create(name, wanted)
        work.audit_log.append(BY, "token.made", f"token/{name}", after=sorted(wanted))
    print(f'token "{name}" created; its secret, shown only once:', file=sys.stderr)
    print(secret)


def _list(store: Store, *, as_json: bool) -> None:
    with store.reading() as reading:
        tokens = reading.tokens.list()
    if as_json:
        names = ("name", "scopes", "created_at", "last_used_at", "revoked_at")
        print_json([{name: getattr(token, name) for name in names} for token in tokens])
        return
    if not tokens:
        print("no tokens", file=sys.stderr)
    for token in tokens:
        state = f"revoked {_day(token.revoked_at)}" if token.revoked_at else f"last used {_day(token.last_used_at)}"
        print(f"{token.name}\t{','.join(sorted(token.scopes))}\tcreated {_day(token.created_at)}\t{state}")


def _day(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
