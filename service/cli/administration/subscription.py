"""`faultline subscription list|add|end`: who receives the weekly report."""

import argparse

from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers, between
from service.cli.output import add_json_option, json_document
from service.deliveries.config import report_receivers
from service.people.records import COMMAND_LINE
from service.reports.scope import scope_of
from service.reports.subscriptions import Subscriptions, described

LARGEST = 2**62  # of an id, as in the API


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("subscription", help="list, add or end subscriptions of the weekly report")
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="send the weekly report to a person or a channel")
    add.add_argument("endpoint", help="an endpoint of FAULTLINE_DELIVERY_FILE: chat, mail, webhook or topic")
    add.add_argument("--user", help="the person, for an endpoint whose address contains {user}")
    add.add_argument("--cluster", help="only jobs of this cluster")
    add.add_argument("--team", help="only jobs of this team")
    listing = actions.add_parser("list", help="list the subscriptions")
    add_json_option(listing)
    end = actions.add_parser("end", help="end a subscription")
    end.add_argument("number", type=between(1, LARGEST), help="its number in the list")


def run(args: argparse.Namespace) -> int:
    """List, add or end subscriptions.

    Raises:
        InvalidInput: no such endpoint, user or scope.
        FaultlineError: it exists already or not at all, or the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check_for_changes()
        receivers = report_receivers(services.delivery)
        subscriptions = Subscriptions(services.store, services.zone, services.clock, receivers)
        if args.action == "add":
            added = subscriptions.add(args.endpoint, args.user, scope_of(args.cluster, args.team), COMMAND_LINE)
            output.line(f"{added.id}: the weekly report is sent to {described(added)}")
        elif args.action == "end":
            ended = subscriptions.remove(args.number, COMMAND_LINE)
            output.line(f"{ended.id}: the weekly report is no longer sent to {described(ended)}")
        else:
            _list(subscriptions, as_json=args.format == "json")
    finally:
        services.close()
    return 0


def _list(subscriptions: Subscriptions, *, as_json: bool) -> None:
    found = subscriptions.all()
    if as_json:
        json_document(
            [
                {
                    "id": one.id,
                    "endpoint": one.endpoint,
                    "user": one.recipient,
                    "cluster": one.scope.cluster,
                    "team": one.scope.team,
                    "created_at": one.created_at,
                    "by": one.created_by,
                    "last_week": one.last_week,
                }
                for one in found
            ]
        )
        return
    if not found:
        output.line("no subscriptions", error=True)
    for one in found:
        output.row(str(one.id), described(one), f"by {one.created_by}", f"last week {one.last_week}")
