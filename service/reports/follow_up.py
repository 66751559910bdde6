"""The outcome of the actions that the report of the week before recommended."""

from collections.abc import Iterable, Mapping

from service.formatting import gpu_hours, number
from service.reports.document import FollowUp, Todo
from service.reports.top_actions import covers
from service.reports.weekly_facts import Facts


def follow_ups(facts: Facts, texts: Mapping[str, str]) -> Iterable[FollowUp]:
    """The outcome of each earlier action: the failures and GPU-hours that it is about, then and in this week."""
    for todo in facts.previous_todo:
        if todo.target:
            yield _follow_up(todo, facts, texts)


def _follow_up(todo: Todo, facts: Facts, texts: Mapping[str, str]) -> FollowUp:
    cells = [cell for cell in facts.cells if covers(todo.target, cell, facts)]
    failures, hours = sum(cell.failures for cell in cells), sum(cell.gpu_hours for cell in cells)
    before = {"failures_before": number(todo.failures), "hours_before": gpu_hours(todo.lost_gpu_hours)}
    outcome = texts["none" if not failures else "again"].format(
        failures=number(failures), hours=gpu_hours(hours), **before
    )
    return FollowUp(todo.title, outcome, todo.href)
