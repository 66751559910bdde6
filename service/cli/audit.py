"""`faultline audit list|verify`: who changed what, and whether anybody changed the record of it."""

import argparse
import sys
from typing import TYPE_CHECKING

from service import compose, settings
from service.db.session import Store

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

CHANGED = 1


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("audit", help="who changed what, and whether the record of it was changed")
    actions = parser.add_subparsers(dest="action", required=True)
    shown = actions.add_parser("list", help="changes, newest first")
    shown.add_argument("--subject", help="of one thing, such as failure/12 or account/ana")
    shown.add_argument("--limit", type=int, default=50)
    actions.add_parser("verify", help="check the log's chain and every sealed verdict; exit 1 where one was changed")


def run(args: argparse.Namespace) -> int:
    """Show or check.

    Raises:
        FaultlineError: no database.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        if args.action == "verify":
            return _verify(services.store)
        with services.store.reading() as reading:
            found = reading.audit_log.page(limit=max(1, min(args.limit, 1_000)), subject=args.subject)
        for one in found.items:
            when = f"{one.at:%Y-%m-%d %H:%M:%S} UTC"
            print("\t".join((str(one.id), when, one.who, one.what, one.subject, f"{one.before} → {one.after}")))
    finally:
        services.close()
    return 0


def _verify(store: Store) -> int:
    with store.reading() as reading:
        count, broken = reading.audit_log.verify()
        seals = reading.verdict_seals.check()
    print(f"audit log: {count} entries hold")
    print(f"verdicts: {seals.intact} as they were sealed, {seals.removed} removed by retention since")
    if broken is not None:
        print(f"audit log: entry {broken.id}: {broken.detail}", file=sys.stderr)
    for failure_id, version in seals.changed:
        print(f"failure {failure_id}, version {version}: changed since it was sealed", file=sys.stderr)
    for seal in seals.broken:
        print(f"seal {seal}: changed, or the one before it is missing", file=sys.stderr)
    return CHANGED if broken is not None or seals.changed or seals.broken else 0
