"""Logs in local time, logs that end long before their job, and node events in UTC are put on one clock."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.relevance.event_candidates import Reason
from tests.classifiers.packaged_catalogue import EXTRACTOR

START = datetime(2026, 6, 10, 8, 0, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
_SOON, _LATE = timedelta(seconds=5), timedelta(hours=5)
PEERS = "[rank{0}]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41234"


def event(
    minutes: float,
    events: Sequence[tuple[float, str]],
    *,
    zone: timedelta,
    silent: timedelta,
    start: datetime = START,
) -> dict[str, Any]:
    """A job that prints a line each minute for so many minutes, stops, and ends after a silence."""
    lines = [
        f"{start + zone + timedelta(minutes=at):%Y-%m-%d %H:%M:%S} INFO step {at} loss 2.1"
        for at in range(int(minutes))
    ]
    lines += [PEERS.format(rank) for rank in (0, 1)]
    return {
        "cluster": "c",
        "job_id": "71",
        "status": "failed",
        "gpus": 8,
        "nodes": ["gpu1", "gpu2"],
        "started_at": start.isoformat(),
        "ended_at": (start + timedelta(minutes=minutes) + silent).isoformat(),
        "logs": [{"rank": None, "tail": "\n".join(lines)}],
        "node_events": [
            {"at": (start + timedelta(minutes=at)).isoformat(), "node": "gpu1", "source": "kernel", "text": text}
            for at, text in events
        ],
    }


def notes(given: dict[str, Any]) -> list[str | None]:
    return [one.note for one in EXTRACTOR.extract(build_case(given)).case.evidence if one.text.startswith("NVRM")]


@pytest.mark.parametrize(
    ("hours", "silent"), [(0, _SOON), (2, _SOON), (-7, _SOON), (5.5, _SOON), (0, _LATE), (-7, _LATE)]
)
def test_an_event_is_compared_by_the_clock_of_the_log(hours: float, silent: timedelta) -> None:
    zone = timedelta(hours=hours)
    survived = event(300, [(120, XID)], zone=zone, silent=silent)
    assert notes(survived) in ([Reason.SURVIVED.value], [Reason.LONG_BEFORE.value])
    at_the_stop = event(300, [(299.5, XID)], zone=zone, silent=silent)
    assert notes(at_the_stop) == [None]


@pytest.mark.parametrize("hours", [0, 8, -8])
@pytest.mark.parametrize(
    "start",
    [
        datetime(2026, 12, 31, 20, tzinfo=UTC),
        datetime(2026, 12, 31, 14, tzinfo=UTC),
        datetime(2027, 2, 28, 20, tzinfo=UTC),
        datetime(2027, 2, 28, 14, tzinfo=UTC),
        datetime(2028, 2, 28, 20, tzinfo=UTC),
        datetime(2028, 2, 29, 20, tzinfo=UTC),
    ],
)
def test_new_year_and_the_end_of_february_break_no_clock(start: datetime, hours: int) -> None:
    zone = timedelta(hours=hours)
    survived = event(300, [(120, XID)], zone=zone, silent=_SOON, start=start)
    assert notes(survived) in ([Reason.SURVIVED.value], [Reason.LONG_BEFORE.value])
    at_the_stop = event(300, [(299.5, XID)], zone=zone, silent=_SOON, start=start)
    assert notes(at_the_stop) == [None]


def test_where_no_clock_fits_events_are_still_compared_with_each_other() -> None:
    zone = timedelta(hours=1, days=20)
    given = event(300, [(120, XID), (125, "GPU 0000:3b:00.0 passed its diagnosis, returned to service")],
                  zone=zone, silent=timedelta(hours=30))  # fmt: skip
    assert notes(given) == [Reason.RECOVERED.value]


def test_a_tail_of_a_log_is_set_by_its_end_west_of_greenwich() -> None:
    given = event(300, [(299.5, XID)], zone=timedelta(hours=-8), silent=_SOON)
    lines = given["logs"][0]["tail"].split("\n")
    given["logs"][0]["tail"] = "\n".join(lines[-60:])  # begins four hours after the job
    assert notes(given) == [None]
