"""The three actions for next week that would save most, and the outcome of those of the report before."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from classifiers import taxonomy
from service.formatting import gpu_hours, number, percent, whole_words, with_noun
from service.reports import scope as scopes
from service.reports.document import FollowUp, RecommendedAction
from service.reports.weekly_facts import CostCell, Facts, GroupFacts, NodeFacts
from service.statistics.records import UNKNOWN, Scope

MOST = 3
ENVIRONMENT, GROUP, NODE = "environment", "group:", "node:"
_HEADLINE = 120  # characters


@dataclass(frozen=True, slots=True)
class _Action:
    """An action, the failures that it prevents, and the share of them that it prevents."""

    title: str
    href: str
    target: str
    covers: Callable[[CostCell], bool]
    calculation: Callable[[int, float], str]  # of the failures and GPU-hours that are left
    share: float = 1.0

    def left(self, cells: list[CostCell]) -> tuple[float, float, int]:
        """GPU-hours saved, and the GPU-hours and failures they are a share of."""
        own = [cell for cell in cells if self.covers(cell)]
        hours, failures = sum(cell.gpu_hours for cell in own), sum(cell.failures for cell in own)
        return hours * self.share, hours, failures


def top_actions_of(facts: Facts, texts: Mapping[str, Any]) -> tuple[RecommendedAction, ...]:
    """The actions that would save most GPU-hours (then most failed jobs) in a week like this, one after the other.

    Each counts only the failures that no action before it covers, so that the savings can be added up.
    """
    actions, cells, made = list(_actions(facts, texts)), list(facts.cells), list[RecommendedAction]()
    lost = sum(cell.gpu_hours for cell in cells)
    while actions and len(made) < MOST:
        best = min(actions, key=lambda one: (*(-value for value in one.left(cells)), one.title))
        saved, hours, failures = best.left(cells)
        if not failures:
            break
        if saved > 0:
            gain = texts["gain"].format(gain=gpu_hours(saved), share=percent(saved / lost, 0))
            gain += f", {facts.price.of(saved)}" if facts.price is not None else ""
        else:
            whose = texts["its" if failures == 1 else "their"]
            gain = texts["jobs"].format(failures=with_noun(failures, "failed attempt"), whose=whose)
        made.append(
            RecommendedAction(
                best.title,
                round(saved, 2),
                gain,
                best.calculation(failures, hours),
                best.href,
                best.target,
                failures,
                round(hours, 2),
            )
        )
        cells = [cell for cell in cells if not best.covers(cell)]
        actions.remove(best)
    return tuple(made)


def covers(target: str, cell: CostCell, facts: Facts) -> bool:
    """Whether failures of a later week are about the target of an action; groups as people merged them since."""
    if target == ENVIRONMENT:
        return cell.environment
    if target.startswith(GROUP):
        fingerprint = target.removeprefix(GROUP)
        same = next((one for one in facts.groups if fingerprint in {one.fingerprint, *one.merged}), None)
        members = {fingerprint} if same is None else {same.fingerprint, *same.merged}
        return cell.group in members and not cell.environment
    return target == f"{NODE}{cell.cluster}/{cell.node}" and not cell.environment


def _actions(facts: Facts, texts: Mapping[str, Any]) -> Iterator[_Action]:
    titles = Counter(_title(group, texts) for group in facts.groups)
    for group in facts.groups:
        if not group.resolved:
            action = _of_group(group, texts, facts.scope)
            yield replace(action, title=f"{action.title} ({_cause(group)})") if titles[action.title] > 1 else action
    for node in facts.nodes:
        if node.ratio > 1:
            yield _of_node(node, texts)
    yield _Action(
        texts["environment"],
        f"/failures?{urlencode({'category': 'EE.1', **scopes.values(facts.scope)})}",
        ENVIRONMENT,
        lambda cell: cell.environment,
        lambda failures, _hours: texts["environment_calculation"].format(failures=with_noun(failures, "failure")),
    )


def group_link(fingerprint: str, scope: Scope) -> str:
    """The page of a group's failures in a scope."""
    return f"/failures?{urlencode({'group': fingerprint, **scopes.values(scope)})}"


def _title(group: GroupFacts, texts: Mapping[str, Any]) -> str:
    headline = whole_words(group.headline, _HEADLINE) or group.fingerprint
    title: str = texts.get(f"group_{group.side}", texts["group_unknown"]).format(headline=headline)
    return title


def _cause(group: GroupFacts) -> str:
    """What tells groups with the same headline apart."""
    title = taxonomy.load().title_of(group.cause)
    return f"possibly {title}" if group.side == UNKNOWN and group.cause != UNKNOWN else title


def _of_group(group: GroupFacts, texts: Mapping[str, Any], scope: Scope) -> _Action:
    members = {group.fingerprint, *group.merged}
    return _Action(
        _title(group, texts),
        group_link(group.fingerprint, scope),
        f"{GROUP}{group.fingerprint}",
        lambda cell: cell.group in members and not cell.environment,
        lambda failures, _hours: texts["group_calculation"].format(
            failures=with_noun(failures, "failure"), users=with_noun(group.users, "user")
        ),
    )


def _of_node(node: NodeFacts, texts: Mapping[str, Any]) -> _Action:
    return _Action(
        texts["node"].format(node=node.node),
        f"/nodes/{quote(node.cluster, safe='')}/{quote(node.node, safe='')}",
        f"{NODE}{node.cluster}/{node.node}",
        lambda cell: (cell.cluster, cell.node) == (node.cluster, node.node) and not cell.environment,
        lambda _failures, hours: texts["node_calculation"].format(
            lost=gpu_hours(hours), ratio=number(node.ratio, 1), low=number(node.low, 1), high=number(node.high, 1)
        ),
        1 - 1 / node.ratio,
    )


def follow_ups(facts: Facts, texts: Mapping[str, str]) -> Iterable[FollowUp]:
    """The outcome of each earlier action: the failures and GPU-hours that it is about, then and in this week."""
    for todo in facts.previous_todo:
        if todo.target:
            yield _follow_up(todo, facts, texts)


def _follow_up(todo: RecommendedAction, facts: Facts, texts: Mapping[str, str]) -> FollowUp:
    cells = [cell for cell in facts.cells if covers(todo.target, cell, facts)]
    failures, hours = sum(cell.failures for cell in cells), sum(cell.gpu_hours for cell in cells)
    earlier = number(todo.failures) if failures else with_noun(todo.failures, "failed attempt")
    before = {"failures_before": earlier, "hours_before": gpu_hours(todo.lost_gpu_hours)}
    outcome = texts["none" if not failures else "again"].format(
        failures=with_noun(failures, "failed attempt"), hours=gpu_hours(hours), **before
    )
    return FollowUp(todo.title, outcome, todo.href)
