"""What people see of a system while its parts are killed: the rates of the pages, and the alarms."""

import threading
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import yaml
from prometheus_client.parser import text_string_to_metric_families as read_metrics
from sqlalchemy import text

from service.clock import SystemClock
from service.contracts.event import FAILURE_STATUSES
from service.db.session import Store
from service.errors import Unavailable
from service.groups.count_updater import GroupCountUpdater
from service.maintenance import HourlyCounts
from tests.service.databases import connection_of

ALERTS: Final = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
DATABASE_DOWN: Final = "FaultlineDatabaseDown"
LAG_UNKNOWN: Final = "FaultlineLagUnknown"
LOOK_S: Final = 0.5
_COUNTED: Final = text(
    "SELECT status, count(*) AS jobs FROM jobs WHERE ended_at >= :since AND ended_at < :until GROUP BY status"
)
_OF_GROUPS: Final = text("SELECT (SELECT coalesce(sum(failures), 0) FROM groups), (SELECT count(*) FROM failures)")

Samples = Sequence[tuple[str, float]]  # a metric's name and value, one for each process and label

# Alert -> its rule, and whether that holds for the present metrics. The time that it has to hold is not waited for.
CONDITIONS: Final[dict[str, tuple[str, Callable[[Samples], bool]]]] = {
    DATABASE_DOWN: (
        "min(faultline_database_up) == 0",
        lambda samples: min((value for name, value in samples if name == "faultline_database_up"), default=1.0) == 0,
    ),
    LAG_UNKNOWN: (
        "count(last_over_time(faultline_consumer_lag_records[1d])) unless on() count(faultline_consumer_lag_records)",
        lambda samples: all(name != "faultline_consumer_lag_records" for name, _ in samples),
    ),
}


def rules() -> dict[str, str]:
    """The expression of each alert that is delivered."""
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def metrics(port: int, processes: int) -> Samples:
    """The metrics of the processes of a worker that answer."""
    found = []
    for number in range(processes):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port + number}/metrics", timeout=5) as answer:
                families = list(read_metrics(answer.read().decode()))
        except OSError:
            continue
        found += [(sample.name, sample.value) for family in families for sample in family.samples]
    return found


class ShownRates:
    """Compares the counts and rates of pages with the rows, in one snapshot each, again and again while faults happen.

    It recounts hours and groups meanwhile, as each process of the program does. `wrong` says what did not agree.
    """

    def __init__(self, url: str, since: datetime, until: datetime) -> None:
        """`since`, `until`: the period of the page; longer than the hours that are read from the rows themselves."""
        self._url = url
        self._period = {"since": since, "until": until}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.wrong: list[str] = []
        self.looks = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        with closing(Store(self._url)) as store:
            while not self._stop.wait(LOOK_S):
                try:
                    self.wrong += self.look(store)
                    GroupCountUpdater(store, SystemClock())()
                    HourlyCounts(store, SystemClock())()
                except Unavailable:
                    continue  # the database is down
                self.looks += 1

    def look(self, store: Store, *, at_the_end: bool = False) -> list[str]:
        """What pages show wrongly now; `at_the_end`: every failure has to be in its group."""
        with store.reading() as reading:
            shown = reading.statistics.stats(self._period["since"], self._period["until"])
            connection = connection_of(reading.statistics)
            rows = connection.execute(_COUNTED, self._period).all()
            counts = {str(row.status): int(row.jobs) for row in rows}
            in_groups, failures = connection.execute(_OF_GROUPS).one()
        failed = sum(counts.get(status, 0) for status in FAILURE_STATUSES)
        finished = failed + counts.get("succeeded", 0)
        wrong = []
        if shown.by_status != counts or shown.rate != (failed / finished if finished else None):
            wrong.append(f"a rate of {shown.rate} of {shown.by_status} is shown for {counts}")
        if in_groups > failures or (at_the_end and in_groups != failures):
            wrong.append(f"groups count {in_groups} failures of {failures}")
        return wrong


def shown_wrongly(url: str, since: datetime, until: datetime) -> list[str]:
    """What pages show wrongly once everything is stored and counted."""
    with closing(Store(url)) as store:
        for count in (GroupCountUpdater(store, SystemClock()), HourlyCounts(store, SystemClock())):
            count()
        return ShownRates(url, since, until + timedelta(hours=1)).look(store, at_the_end=True)
