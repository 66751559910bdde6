"""Sparklines of groups on the overview and on the list of groups."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.web.pages.charts.sparklines import BARS, HEIGHT, STEP, sparkline
from tests.service.web.world import NOW, event, lines, log

HOUR = timedelta(hours=1)


def test_bars_are_in_the_order_of_time_and_the_highest_one_fills_the_drawing() -> None:
    line = sparkline([(NOW - HOUR, 1), (NOW - 2 * HOUR, 3), (NOW - 6.5 * 24 * HOUR, 2)], NOW)
    assert line.bars == ((STEP, HEIGHT / 2), ((BARS - 1) * STEP, HEIGHT))
    assert line.text.endswith("oldest first: 2, 0, 0, 0, 0, 0, 4")


def test_failures_before_the_period_are_left_out() -> None:
    line = sparkline([(NOW - 8 * 24 * HOUR, 5)], NOW)
    assert line.bars == ()
    assert line.text.endswith(": 0, 0, 0, 0, 0, 0, 0")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/", ["0, 0, 0, 0, 0, 0, 1"]), ("/groups", ["0, 0, 0, 0, 0, 0, 1", "0, 0, 0, 1, 0, 0, 2"])],
    ids=["groups that need attention", "all groups"],
)
def test_each_group_has_a_sparkline_with_its_failures_by_day(
    client: TestClient, path: str, expected: list[str]
) -> None:
    ends = [NOW - timedelta(days=days, hours=2) for days in (0, 0, 3)]
    events = [
        event(str(number), ended_at=end.isoformat(), started_at=(end - HOUR).isoformat())
        for number, end in enumerate(ends)
    ]
    xid = event("x", logs=[log("NVRM: Xid 79, GPU has fallen off the bus", 1)])
    assert client.post("/api/v1/events", content=lines(*events, xid)).json()["accepted"] == 4
    texts = re.findall(r'class="spark"[^>]* aria-label="([^"]*)"', client.get(path).text)
    assert sorted(text.partition(": ")[2] for text in texts) == expected
