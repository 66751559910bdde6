"""`faultline policy check|show`: whether a policy file is sound, and what is in force for whom."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service import settings
from service.recommend import policy

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("policy", help="check or show the mitigation policy")
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="say whether a policy file is sound")
    check.add_argument("file", type=Path)
    show = actions.add_parser(
        "show", help="the rules in force (first match decides) and every setting with where it comes from"
    )
    show.add_argument("--policy", type=Path, help="a file other than the one in force (FAULTLINE_POLICY_FILE)")
    show.add_argument("--cluster", help="as it is for jobs of this cluster")
    show.add_argument("--queue", help="as it is for jobs of this queue")
    show.add_argument("--team", help="as it is for jobs of this team")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _show(found: policy.Policy, overrides: tuple[str, ...]) -> None:
    print(f"policy {found.version}")
    for number, rule in enumerate(found.rule, 1):
        conditions = rule.when.model_dump(exclude_none=True, mode="json")
        origin = found.origin("rule", rule.name)
        print(f"{number}. {rule.name}: {conditions or 'always'} → {rule.decision}. {rule.says} ({origin})")
    print()
    rows = [(name, _value(value), origin) for name, value, origin in found.values()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}} = {value:<{widths[1]}}  # {origin}")
    if overrides:
        print("\noverrides: " + "; ".join(overrides))


def run(args: argparse.Namespace) -> int:
    """Check a file or print what is in force.

    Raises:
        ConfigurationError: the policy is not sound; names each place with its line.
    """
    if args.action == "check":
        found = policy.load(args.file)
        print(f"{args.file}: policy {found.version}, {len(found.rule)} rules, sound")
        return 0
    found = policy.load(args.policy or settings.read().policy_file)
    _show(found.effective(cluster=args.cluster, queue=args.queue, team=args.team), found.overrides)
    return 0
