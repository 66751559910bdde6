"""`faultline automation stop|start|status`: the kill switch, and what waits behind it."""

import argparse
import getpass
import socket
from typing import TYPE_CHECKING

from service import compose, settings
from service.db.session import Store

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("automation", help="stop or start all automatic action, or show how it stands")
    actions = parser.add_subparsers(dest="action", required=True)
    stop = actions.add_parser("stop", help="from now on hooks get nothing, in any process, until it is started again")
    stop.add_argument("--reason", help="why, for those who wonder")
    actions.add_parser("start", help="let automatic action go on")
    actions.add_parser("status", help="whether it is stopped, and what waits")


def run(args: argparse.Namespace) -> int:
    """Turn the switch or show it.

    Raises:
        ConfigurationError: a setting is wrong, or the database is not this version's.
        Unavailable: the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        if args.action == "stop":
            services.automation.turn(stopped=True, by=_who(), reason=args.reason)
            print("stopped: from now on nothing is given to any hook")
        elif args.action == "start":
            services.automation.turn(stopped=False, by=_who())
            print("started: what waits and has not expired goes on")
        else:
            _show(services.store)
    finally:
        services.close()
    return 0


def _show(store: Store) -> None:
    with store.reading() as reading:
        switch = reading.kill_switch.get()
        counts = reading.requests.count_by_state()
        incidents = reading.incidents.opened()
    turned = f" by {switch.by}, {switch.at:%Y-%m-%d %H:%M:%S} UTC" if switch.at is not None else ""
    why = f": {switch.reason}" if switch.reason else ""
    print(f"{'stopped' if switch.stopped else 'on'}{turned}{why if switch.stopped else ''}")
    for state in sorted(counts):
        print(f"{state}\t{counts[state]}")
    for incident in incidents:
        print(f"incident {incident.id}\t{incident.cluster}\t{incident.title}\t{incident.jobs} jobs")


def _who() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return socket.gethostname()
