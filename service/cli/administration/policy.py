"""`faultline policy check|show|explain|replay`: validate, print, explain or compare mitigation policies."""

import argparse
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from service import compose, settings
from service.automation import decision_records
from service.automation.policy_replay import replay
from service.cli import output
from service.cli.argument_types import Subparsers, between, span
from service.cli.files import check_writable, write_output
from service.clock import SystemClock
from service.db.session import Store
from service.recommend import policy, replay_report
from service.recommend.advise import advise


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("policy", help="check, show, explain or replay the mitigation policy")
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="validate a policy file")
    check.add_argument("file", type=Path)
    show = actions.add_parser(
        "show", help="print the effective rules (first match decides) and every setting with its origin"
    )
    show.add_argument("--policy", type=Path, help="show this file instead of the effective one (FAULTLINE_POLICY_FILE)")
    show.add_argument("--cluster", help="the values for jobs of this cluster")
    show.add_argument("--queue", help="the values for jobs of this queue")
    show.add_argument("--team", help="the values for jobs of this team")
    explain = actions.add_parser(
        "explain", help="print every rule evaluated for a failure, its result, and the deciding rule"
    )
    explain.add_argument("failure", type=int, help="the number of the failure, as in the address of its page")
    explain.add_argument("--version", type=int, help="version of the verdict (default: the newest)")
    explain.add_argument("--policy", type=Path, help="evaluate this policy file with the facts known at the time")
    replay = actions.add_parser("replay", help="print the stored decisions that another policy would change")
    replay.add_argument(
        "--policy", type=Path, required=True, help="the policy file to compare with the stored decisions"
    )
    replay.add_argument("--since", type=span, default=timedelta(days=28), help="how far back: 28d, 36h (default: 28d)")
    choice = replay.add_mutually_exclusive_group()
    choice.add_argument("--format", choices=("table", "html", "json"), default="table")
    choice.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    replay.add_argument("--output", type=Path, help="write here instead of standard output")
    replay.add_argument("--workers", type=between(1, 64), default=2, help="processes (default: 2)")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _show(found: policy.Policy, overrides: tuple[str, ...]) -> None:
    output.line(f"policy {found.version}")
    for number, rule in enumerate(found.rule, 1):
        conditions = rule.when.model_dump(exclude_none=True, mode="json")
        origin = found.origin("rule", rule.name)
        output.line(f"{number}. {rule.name}: {conditions or 'always'} → {rule.decision}. {rule.says} ({origin})")
    output.line()
    rows = [(name, _value(value), origin) for name, value, origin in found.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, value, origin in rows:
        output.line(f"{name:<{widths[0]}} = {value:<{widths[1]}}  # {origin}")
    if overrides:
        output.line()
        output.line("overrides: " + "; ".join(overrides))


def _explain(args: argparse.Namespace, store: Store, in_force: policy.Policy) -> None:
    with store.reading() as reading:
        past = decision_records.decision(reading, args.failure, args.version)
    other = policy.load(args.policy) if args.policy is not None else in_force
    effective = other.effective(cluster=past.cluster, queue=past.queue, team=past.team)
    advice = advise(past.verdict, past.job, past.facts, effective)
    output.line(f"failure {past.failure_id}: decided {past.decision} ({past.mode}), {past.at:%Y-%m-%d %H:%M:%S} UTC")
    output.line(f"policy {advice.policy}: {advice.decision} ({advice.mode}), decided by: {advice.rule}")
    output.line()
    width = max(len(one.name) for one in advice.evaluated_rules)
    for one in advice.evaluated_rules:
        output.line(f"{'→' if one.decided else ' '} {one.name:<{width}}  {one.explanation}")


def _replay(args: argparse.Namespace, database_url: str) -> None:
    check_writable(args.output)
    since: datetime = SystemClock().now() - args.since
    found = replay(database_url, policy.load(args.policy), since, args.workers)
    if args.format == "json":
        text = orjson.dumps(replay_report.as_json(found), option=orjson.OPT_INDENT_2).decode() + "\n"
    elif args.format == "html":
        text = replay_report.as_html(found)
    else:
        text = replay_report.as_text(found) + "\n"
    write_output(args.output, text.encode())


def run(args: argparse.Namespace) -> int:
    """Validate a file, print the effective policy, explain a decision, or replay stored ones with another policy.

    Raises:
        ConfigurationError: the policy is invalid (names each place with its line), or a setting is wrong.
        NotFound: no advice on this failure is stored.
        Unavailable: the database does not answer.
    """
    if args.action == "check":
        found = policy.load(args.file)
        output.line(f"{args.file}: policy {found.version}, {len(found.rule)} rules, valid")
        return 0
    configured = settings.read()
    if args.action == "show":
        found = policy.load(args.policy or configured.policy_file)
        _show(found.effective(cluster=args.cluster, queue=args.queue, team=args.team), found.overrides)
        return 0
    services = compose.build(configured)
    try:
        services.store.check()
        if args.action == "explain":
            _explain(args, services.store, services.policy)
        else:
            _replay(args, configured.database_url.get_secret_value())
    finally:
        services.close()
    return 0
