"""The suspicion as of an earlier time does not know later failures, and equals the one computed at that time."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from service import weeks
from service.db.session import Store
from service.nodes.counting import day_of, refresh
from service.nodes.past_suspicion import suspicion_at
from service.nodes.records import DaySums, FleetSettings
from service.reports.gather import gather

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
SETTINGS = FleetSettings()


def add(store: Store, node: str, at: datetime, blame: float) -> None:
    with store.unit_of_work() as work:
        work.suspicion.add_days({("orion", node, day_of(at)): DaySums(20.0, 3, int(blame), blame)})


def test_a_past_week_shows_the_suspicion_of_its_end(store: Store) -> None:
    for back in range(1, 8):
        add(store, "early", MONDAY - timedelta(days=back), 1.0)
        add(store, "late", MONDAY - timedelta(days=back), 0.0)
        add(store, "late", MONDAY + timedelta(days=back), 1.0)
    with store.unit_of_work() as work:
        keys = [("orion", "early"), ("orion", "late")]
        refresh(work, keys, now=MONDAY - timedelta(hours=1), settings=SETTINGS)
        row = work.suspicion.get("orion", "early")
    with store.reading() as reading:
        [found] = suspicion_at(reading, MONDAY, SETTINGS)
        later = suspicion_at(reading, MONDAY + timedelta(days=8), SETTINGS)
    assert found.node == "early"
    assert (found.ratio.mean, found.ratio.low, found.weighted_failures) == pytest.approx(
        (row.rate_ratio, row.low, row.blame)
    )
    assert [one.node for one in later] == ["late", "early"]
    week = gather(store, weeks.parse("2026-W47"), ZoneInfo("UTC"), MONDAY + timedelta(days=8))
    assert [one.node for one in week.nodes] == ["early"], "its report is read a week later"
