"""`faultline policy check|show`: whether a policy file is sound, and which rules are in force."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

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
    actions.add_parser("show", help="the rules in force, first match decides")


def run(args: argparse.Namespace) -> int:
    """Check a file or print the rules.

    Raises:
        ConfigurationError: the policy is not sound; names each place.
    """
    if args.action == "check":
        found = policy.load(args.file)
        print(f"{args.file}: policy {found.version}, {len(found.rule)} rules, sound")
        return 0
    found = policy.load(settings.read().policy_file)
    print(f"policy {found.version}")
    for number, rule in enumerate(found.rule, 1):
        conditions = rule.when.model_dump(exclude_none=True, mode="json")
        print(f"{number}. {rule.name}: {conditions or 'always'} → {rule.decision}. {rule.says}")
    return 0
