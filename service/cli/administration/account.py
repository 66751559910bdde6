"""`faultline account create|list|change|disable`: manage accounts that log in with a name and a password."""

import argparse
import getpass
import sys

from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.output import add_json_option, json_document
from service.db.session import Store
from service.people import one_time_codes, passwords
from service.people.records import COMMAND_LINE
from service.people.repository.accounts import ROLES


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("account", help="manage accounts that log in with a name and a password")
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create an account; reads the password from terminal or stdin")
    change = actions.add_parser("change", help="change role, users, teams or password; ends the account's sessions")
    for one, needed in ((create, True), (change, False)):
        one.add_argument("name")
        one.add_argument("--role", required=needed, choices=ROLES)
        one.add_argument("--user", action="append", help="user, or cluster/user, whose jobs it owns; repeatable")
        one.add_argument("--team", action="append", help="team whose jobs the account sees; repeatable")
    change.add_argument("--password", action="store_true", help="prompt for a new password")
    change.add_argument(
        "--one-time-codes",
        choices=("on", "off"),
        help="on: a new key for an authenticator app, printed once; off: log in with the password alone",
    )
    disable = actions.add_parser("disable", help="disable an account at once")
    disable.add_argument("name")
    add_json_option(actions.add_parser("list", help="list all accounts"))


def run(args: argparse.Namespace) -> int:
    """Create, list, change or disable accounts.

    Raises:
        InvalidInput: the name, role or password is not acceptable.
        FaultlineError: the name is taken or not known, or the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check_for_changes()
        {"create": _create, "change": _change, "disable": _disable, "list": _list}[args.action](services.store, args)
    finally:
        services.close()
    return 0


def _create(store: Store, args: argparse.Namespace) -> None:
    hashed = passwords.hash_password(_read_password(args.name), args.name)
    with store.unit_of_work() as work:
        made = work.accounts.create(args.name, args.role, password=hashed, users=args.user or (), teams=args.team or ())
        work.audit_log.append(
            COMMAND_LINE, "account.made", f"account/{made.name}", after={"role": made.role, "teams": made.teams}
        )
    output.line(f'account "{made.name}" created, role {made.role}')


def _change(store: Store, args: argparse.Namespace) -> None:
    given = {"role": args.role, "users": args.user, "teams": args.team}
    values = {name: value for name, value in given.items() if value is not None}
    recorded = dict(values)
    if args.password:
        values["password"] = passwords.hash_password(_read_password(args.name), args.name)
        recorded["password"] = "changed"  # noqa: S105 - the word, no password
    secret = one_time_codes.new_secret() if args.one_time_codes == "on" else None
    if args.one_time_codes is not None:
        values["totp_secret"], recorded["one_time_codes"] = secret, args.one_time_codes
    with store.unit_of_work() as work:
        before = work.accounts.named(args.name)
        after = work.accounts.change(args.name, **values)
        was = {"role": before.role, "teams": before.teams}
        work.audit_log.append(COMMAND_LINE, "account.changed", f"account/{args.name}", before=was, after=recorded)
    output.line(f'account "{after.name}": role {after.role}; its sessions ended')
    if secret is not None:
        output.line("key for an authenticator app, shown only once:", error=True)
        output.line(one_time_codes.address(secret, args.name))


def _disable(store: Store, args: argparse.Namespace) -> None:
    with store.unit_of_work() as work:
        work.accounts.disable(args.name)
        work.audit_log.append(COMMAND_LINE, "account.disabled", f"account/{args.name}")
    output.line(f'account "{args.name}" disabled')


def _list(store: Store, args: argparse.Namespace) -> None:
    with store.reading() as reading:
        found = reading.accounts.list()
    if args.format == "json":
        names = ("name", "role", "source", "users", "teams", "disabled_at")
        json_document([{name: getattr(account, name) for name in names} for account in found])
        return
    if not found:
        output.line("no accounts", error=True)
    for one in found:
        state = "disabled" if one.disabled_at else "active"
        users, teams = (",".join(names) or "-" for names in (one.users, one.teams))
        output.row(one.name, one.role, one.source, users, teams, state)


def _read_password(name: str) -> str:
    """Return the password without echoing it; a terminal prompts for it twice."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass(f"Password of {name}: ")
    while getpass.getpass("Repeat: ") != first:
        first = getpass.getpass(f"The passwords differ. Password of {name}: ")
    return first
