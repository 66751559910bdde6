"""`faultline account create|list|change|disable`: people who log in with a name and a password."""

import argparse
import getpass
import sys
from typing import TYPE_CHECKING

from service import compose, settings
from service.db.session import Store
from service.people import passwords
from service.people.repository.accounts import ROLES

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

BY = "the command line"


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("account", help="people who log in with a name and a password")
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make an account; the password is read from the terminal or stdin")
    change = actions.add_parser("change", help="change role, users, teams or password; ends their sessions")
    for one, needed in ((create, True), (change, False)):
        one.add_argument("name")
        one.add_argument("--role", required=needed, choices=ROLES)
        one.add_argument("--user", action="append", help="user, or cluster/user, whose jobs are theirs; repeatable")
        one.add_argument("--team", action="append", help="team whose jobs they see; repeatable")
    change.add_argument("--password", action="store_true", help="ask for a new password")
    disable = actions.add_parser("disable", help="nobody gets in by it from now on")
    disable.add_argument("name")
    actions.add_parser("list", help="all accounts")


def run(args: argparse.Namespace) -> int:
    """Do what was asked.

    Raises:
        FaultlineError: a name that is taken or not known, a password too short, no database.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        {"create": _create, "change": _change, "disable": _disable, "list": _list}[args.action](services.store, args)
    finally:
        services.close()
    return 0


def _create(store: Store, args: argparse.Namespace) -> None:
    hashed = passwords.hashed(_asked(args.name))
    with store.unit_of_work() as work:
        made = work.accounts.create(args.name, args.role, password=hashed, users=args.user or (), teams=args.team or ())
        work.audit_log.append(
            BY, "account.made", f"account/{made.name}", after={"role": made.role, "teams": made.teams}
        )
    print(f'account "{made.name}" is made, role {made.role}')


def _change(store: Store, args: argparse.Namespace) -> None:
    given = {"role": args.role, "users": args.user, "teams": args.team}
    values = {name: value for name, value in given.items() if value is not None}
    told = dict(values)
    if args.password:
        values["password"] = passwords.hashed(_asked(args.name))
        told["password"] = "changed"  # noqa: S105 - the word, no password
    with store.unit_of_work() as work:
        before = work.accounts.named(args.name)
        after = work.accounts.change(args.name, **values)
        was = {"role": before.role, "teams": before.teams}
        work.audit_log.append(BY, "account.changed", f"account/{args.name}", before=was, after=told)
    print(f'account "{after.name}": role {after.role}; its sessions are ended')


def _disable(store: Store, args: argparse.Namespace) -> None:
    with store.unit_of_work() as work:
        work.accounts.disable(args.name)
        work.audit_log.append(BY, "account.disabled", f"account/{args.name}")
    print(f'account "{args.name}" is disabled')


def _list(store: Store, args: argparse.Namespace) -> None:
    del args
    with store.reading() as reading:
        found = reading.accounts.list()
    if not found:
        print("no accounts", file=sys.stderr)
    for one in found:
        state = "disabled" if one.disabled_at else "in force"
        users, teams = (",".join(names) or "-" for names in (one.users, one.teams))
        print(f"{one.name}\t{one.role}\t{one.source}\t{users}\t{teams}\t{state}")


def _asked(name: str) -> str:
    """The password, never shown; from a terminal it is asked twice."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass(f"Password of {name}: ")
    while getpass.getpass("Once more: ") != first:
        first = getpass.getpass(f"They differ. Password of {name}: ")
    return first
