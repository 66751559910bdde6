"""The three actions for next week that would save most."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from service.formatting import gpu_hours, number
from service.reports.document import Todo
from service.reports.weekly_facts import Facts

MOST = 3
_HEADLINE = 120  # characters


def top_actions_of(facts: Facts, texts: Mapping[str, Any]) -> tuple[Todo, ...]:
    """The three actions that would save most GPU-hours (then most failed jobs) in a week like this."""
    found: list[tuple[float, int, Todo]] = []

    def add(title: str, hours: float, failures: int, reckoned: str, href: str) -> None:
        gain = (
            texts["gain"].format(gain=gpu_hours(hours))
            if hours > 0
            else texts["jobs"].format(failures=number(failures))
        )
        found.append((hours, failures, Todo(title, round(hours, 2), gain, reckoned, href)))

    environment = {group.fingerprint for group in facts.environment}
    for group in facts.groups:
        if group.fingerprint in environment:
            continue
        headline = group.headline[:_HEADLINE] or group.fingerprint
        add(
            texts.get(f"group_{group.side}", texts["group_unknown"]).format(headline=headline),
            group.amount.gpu_hours,
            group.amount.failures,
            texts["group_reckoned"].format(
                failures=_many(group.amount.failures, "failure"), users=_many(group.users, "user")
            ),
            f"/failures?group={quote(group.fingerprint, safe='')}",
        )
    for node in facts.nodes:
        add(
            texts["node"].format(node=node.node),
            node.gpu_hours * (1 - 1 / node.ratio) if node.ratio > 1 else 0.0,
            round(node.failures),
            texts["node_reckoned"].format(
                lost=gpu_hours(node.gpu_hours),
                ratio=number(node.ratio, 1),
                low=number(node.low, 1),
                high=number(node.high, 1),
            ),
            f"/nodes/{quote(node.cluster, safe='')}/{quote(node.node, safe='')}",
        )
    missing = [amount for code, amount in facts.categories.items() if code.startswith("EE.")]
    failures = sum(amount.failures for amount in missing)
    if failures:
        add(
            texts["environment"],
            sum(amount.gpu_hours for amount in missing),
            failures,
            texts["environment_reckoned"].format(failures=number(failures)),
            "/failures?category=EE.1",
        )
    found.sort(key=lambda one: (-one[0], -one[1], one[2].title))
    return tuple(one for _, _, one in found[:MOST])


def _many(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"
