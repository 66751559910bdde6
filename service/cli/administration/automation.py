"""`faultline automation stop|start|status`: the kill switch and the waiting requests."""

import argparse
import getpass
import socket

from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.output import add_json_option, json_document
from service.db.session import Store


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("automation", help="stop or start all automatic actions, or show their status")
    actions = parser.add_subparsers(dest="action", required=True)
    stop = actions.add_parser("stop", help="give no requests to hooks until automation is started again")
    stop.add_argument("--reason", help="the reason, shown on the status page")
    actions.add_parser("start", help="resume automatic actions")
    status = actions.add_parser("status", help="show whether automation is stopped, and the waiting requests")
    add_json_option(status)


def run(args: argparse.Namespace) -> int:
    """Set the kill switch, or show its status.

    Raises:
        ConfigurationError: a setting is wrong, or the database schema is of another version.
        Unavailable: the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        if args.action == "stop":
            services.automation.set_stopped(stopped=True, actor=_actor(), reason=args.reason)
            output.line("stopped: hooks get no requests")
        elif args.action == "start":
            services.automation.set_stopped(stopped=False, actor=_actor())
            output.line("started: waiting requests that have not expired continue")
        else:
            _show(services.store, as_json=args.format == "json")
    finally:
        services.close()
    return 0


def _show(store: Store, *, as_json: bool) -> None:
    with store.reading() as reading:
        switch = reading.kill_switch.get()
        counts = reading.requests.count_by_state()
        incidents = reading.incidents.opened()
    if as_json:
        shown = {"stopped": switch.stopped, "by": switch.by, "at": switch.at, "reason": switch.reason}
        listed = [{"id": i.id, "cluster": i.cluster, "title": i.title, "jobs": i.jobs} for i in incidents]
        json_document(shown | {"requests": counts, "incidents": listed})
        return
    turned = f" by {switch.by}, {switch.at:%Y-%m-%d %H:%M:%S} UTC" if switch.at is not None else ""
    why = f": {switch.reason}" if switch.reason else ""
    output.line(f"{'stopped' if switch.stopped else 'on'}{turned}{why if switch.stopped else ''}")
    for state in sorted(counts):
        output.row(state, counts[state])
    for incident in incidents:
        output.row(f"incident {incident.id}", incident.cluster, incident.title, f"{incident.jobs} jobs")


def _actor() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return socket.gethostname()
