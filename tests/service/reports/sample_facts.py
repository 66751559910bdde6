"""Constructed facts for reports."""

from datetime import UTC, datetime, timedelta

from service.feedback.records import AuditResult
from service.goodput import figures
from service.goodput.records import AttemptSum, GoodputCounts, IncidentTimes, Quantiles, RunSums, Times
from service.reports.audit_accuracy import AuditAccuracy, accuracy
from service.reports.records import Amount
from service.reports.weekly_facts import (
    AutomationFacts,
    Cluster,
    CostCell,
    Facts,
    GroupFacts,
    IncidentFacts,
    JobCounts,
    NodeFacts,
    Quality,
    WeekCounts,
)
from service.statistics.records import Scope

SINCE = datetime(2026, 11, 16, tzinfo=UTC)
HOSTILE = 'RuntimeError: <script>alert(1)</script> | #eval("x") *b* {{ 7*7 }} \\'


def week(number: int, *, finished: int = 1000, user: int = 60, hardware: int = 10, hours: float = 5.0) -> WeekCounts:
    sides = {
        "user": Amount(user, user * 1.0, user * 1.0),
        "hardware": Amount(hardware, hardware * hours, hardware * hours**2),
    }
    lost = Amount(
        user + hardware,
        sum(one.gpu_hours for one in sides.values()),
        sum(one.squares for one in sides.values()),
    )
    amounts = [("user", 1.0)] * user + [("hardware", hours)] * hardware
    clusters = tuple(
        Cluster(f"{number}:{place}", side, place % 7, 1, 1, amount) for place, (side, amount) in enumerate(amounts)
    )
    by_day = tuple(finished // 7 + (day < finished % 7) for day in range(7))
    return WeekCounts(
        f"2026-W{number:02d}",
        finished,
        user + hardware,
        lost,
        sides,
        tuple(amount for _, amount in amounts),
        JobCounts(finished, user + hardware, finished, by_day, clusters),
    )


def group(number: int, *, hours: float, side: str = "user", last_before: datetime | None = None) -> GroupFacts:
    return GroupFacts(
        f"1:{number}", number, f"{number} {HOSTILE}", side, "USER.1", Amount(4, hours, hours**2), 2, SINCE, last_before
    )


def facts(*weeks: WeekCounts, **changes: object) -> Facts:
    made: dict[str, object] = {
        "causes": {"USER.1": Amount(60, 60, 60), "HW.GPU.1": Amount(10, 50, 250)},
        "categories": {"EE.1": Amount(30, 20, 20), "DL.1": Amount(20, 10, 10)},
        "symptoms": {"D.1.1": Amount(3, 2, 1)},
        "groups": (
            group(1, hours=40, side="hardware"),
            group(2, hours=30, last_before=SINCE - timedelta(days=30)),
            group(3, hours=20, last_before=SINCE - timedelta(days=1)),
        ),
        "nodes": (NodeFacts("orion", "gpu018", 4.0, 2.0, 7.7, 6, 900, 400),),
        "cells": (
            CostCell("1:1", "orion", None, False, 4, 40.0),
            CostCell("1:2", "orion", None, False, 4, 30.0),
            CostCell("1:3", "orion", None, True, 4, 20.0),
            CostCell("1:4", "orion", "gpu018", False, 6, 400.0),
        ),
        "incidents": (IncidentFacts(12, "/scratch unreachable", SINCE, SINCE + timedelta(hours=2), 38),),
        "automation": AutomationFacts({"done": 12}, {"succeeded": 9}, 430, 12, 1),
        "resubmitted_by_people": 40,
        "quality": Quality(70, 10, 5, 3, 2, 40, 38, 0.93, (0.4, 12.0), (SINCE,), audit=audited()),
    }
    return Facts(
        week="2026-W47",
        zone="Europe/Berlin",
        since=SINCE,
        until=SINCE + timedelta(days=7),
        now=SINCE + timedelta(days=8),
        weeks=weeks or tuple(week(number) for number in range(36, 48)),
        **(made | changes),  # type: ignore[arg-type]  # by name, as each is declared
    )


def audited() -> AuditAccuracy:
    """The audit of a week: 38 of 40 sides are right, and one person could not tell."""
    of = [("hardware", 10, True)] * 9 + [("hardware", 10, False)] + [("user", 60, True)] * 29 + [("user", 60, False)]
    results = [AuditResult("2026-W47", name, size, True, False, right, right) for name, size, right in of]
    return accuracy([*results, AuditResult("2026-W47", "user", 60, True, True, None, None)])


def _attempts(status: str, lost: float, cause: str | None = None) -> AttemptSum:
    return AttemptSum(0, status, "hardware" if cause else None, cause, 8, 3, 3, 100.0, lost, 12.5, 2.0)


GOODPUT = figures.compute(
    GoodputCounts(
        (SINCE, SINCE + timedelta(days=7)),
        (_attempts("succeeded", 0.0), _attempts("failed", 20.0, "HW.GPU.1"), _attempts("preempted", 5.0)),
        RunSums({0: 4, 1: 2}, 250.0, 290.0, 0.9, 2),
        Times(Quantiles(2, 600.0, 1_200.0), Quantiles(3, 4.0, 9.0), Quantiles()),
        IncidentTimes(1, 1, Quantiles(1, 3_600.0, 3_600.0)),
    ),
    Scope(),
)
