"""`faultline audit list|verify|export-head`: list recorded changes, or verify that the records are unaltered."""

import argparse

from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers, between
from service.cli.output import add_json_option, json_document
from service.db.session import Store
from service.errors import ConfigurationError
from service.people.audit_heads import AuditHeadExport, AuditHeads, summary
from service.people.repository.audit_log import AuditFilter

MOST = 1_000


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("audit", help="list recorded changes, or verify that the records are unaltered")
    actions = parser.add_subparsers(dest="action", required=True)
    shown = actions.add_parser("list", help="list changes, newest first")
    shown.add_argument("--subject", help="only changes of this subject, such as failure/12 or account/ana")
    shown.add_argument("--limit", type=between(1, MOST), default=50, help=f"at most so many, 1 to {MOST} (default: 50)")
    verify = actions.add_parser("verify", help="check the hash chain and every sealed verdict; exit code 1: altered")
    actions.add_parser("export-head", help="append the head of the log to FAULTLINE_AUDIT_HEAD_FILE now")
    for action in (shown, verify):
        add_json_option(action)


def run(args: argparse.Namespace) -> int:
    """List or verify.

    Raises:
        FaultlineError: the database does not answer.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        if args.action == "export-head":
            if services.settings.audit_head_file is None:
                raise ConfigurationError("FAULTLINE_AUDIT_HEAD_FILE: expected a file for the heads of the audit log")
            AuditHeadExport(services.store, services.audit_heads, services.clock)()
            return exit_codes.OK
        if args.action == "verify":
            return _verify(services.store, services.audit_heads, as_json=args.format == "json")
        with services.store.reading() as reading:
            found = reading.audit_log.page(limit=args.limit, wanted=AuditFilter(args.subject))
        if args.format == "json":
            names = ("id", "at", "who", "what", "subject", "before", "after")
            json_document([{name: getattr(entry, name) for name in names} for entry in found.items])
            return exit_codes.OK
        for one in found.items:
            when = f"{one.at:%Y-%m-%d %H:%M:%S} UTC"
            output.row(one.id, when, one.who, one.what, one.subject, f"{one.before} → {one.after}")
    finally:
        services.close()
    return 0


def _verify(store: Store, heads: AuditHeads, *, as_json: bool) -> int:
    with store.reading() as reading:
        count, broken = reading.audit_log.verify()
        seals = reading.verdict_seals.check()
        checked, differing = heads.problems(reading.audit_log)
    altered = broken is not None or seals.changed or seals.broken or differing
    code = exit_codes.FAILED if altered else exit_codes.OK
    if as_json:
        json_document(
            {
                "intact": code == exit_codes.OK,
                "entries": count,
                "broken_entry": None if broken is None else {"id": broken.id, "detail": broken.detail},
                "heads": {"checked": checked, "problems": summary(differing)},
                "verdicts": {"intact": seals.intact, "removed": seals.removed},
                "changed_verdicts": [{"failure": failure, "version": version} for failure, version in seals.changed],
                "broken_seals": list(seals.broken),
            }
        )
        return code
    output.line(f"audit log: {count} entries intact")
    output.line(f"exported heads: {max(0, checked - len(differing))} of {checked} agree")
    output.line(f"verdicts: {seals.intact} intact, {seals.removed} removed by retention")
    if broken is not None:
        output.line(f"audit log: entry {broken.id}: {broken.detail}", error=True)
    for problem in summary(differing):
        output.line(f"audit log: {problem}", error=True)
    for failure_id, version in seals.changed:
        output.line(f"failure {failure_id}, version {version}: altered after it was sealed", error=True)
    for seal in seals.broken:
        output.line(f"seal {seal}: altered, or its predecessor is missing", error=True)
    return code
