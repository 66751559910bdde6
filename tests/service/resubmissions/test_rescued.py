from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, text

from service.db.session import Store
from service.resubmissions.repository.rescued import gpu_hours_rescued, rescuable, rescued
from service.resubmissions.tables import requests
from tests.service.databases import engine_of
from tests.service.resubmissions.test_repository import add, new
from tests.service.sample_rows import NOON, job, put

END = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("outcome", "gpus", "hours", "lost", "rescued"),
    [
        ("succeeded", 8, 10, 8.0, 72.0),  # a checkpoint one hour before the failure
        ("succeeded", 8, 10, 80.0, 0.0),  # no checkpoint: starting by hand costs the same
        ("failed_same", 8, 10, 8.0, 0.0),
        ("got_past", 8, 10, 8.0, 0.0),
        (None, 8, 10, 8.0, 0.0),
        ("succeeded", None, 10, 0.0, 0.0),
        ("succeeded", 8, -1, 0.0, 0.0),  # a wrong clock
    ],
)
def test_rescued_is_the_work_before_the_last_checkpoint(
    outcome: str | None, gpus: int | None, hours: float, lost: float, rescued: float
) -> None:
    started = END - timedelta(hours=hours)

    def rescued_by(result: str, begin: datetime | None) -> float:
        return gpu_hours_rescued(outcome, result=result, gpus=gpus, started_at=begin, ended_at=END, gpu_hours_lost=lost)

    found = rescued_by("done", started)
    assert found == rescued
    assert rescued_by("already_done", started) == 0, "the scheduler or a person started it"
    assert rescued_by("done", None) == 0


def test_the_database_sums_what_the_formula_says(store: Store) -> None:
    sizes, hours, losses = (None, 0, 1, 8, 1024), (None, -1.0, 0.0, 0.1234, 30.0), (0.0, 0.5, 300.0)
    attempts = [
        job(
            f"{gpus} {hour} {lost}",
            gpus=gpus,
            started_at=None if hour is None else NOON - timedelta(hours=hour),
            gpu_hours_lost=lost,
        )
        for gpus in sizes
        for hour in hours
        for lost in losses
    ]
    put(store, attempts)
    with engine_of(store).begin() as connection:
        ids = {row.event_id: row.id for row in connection.execute(text("SELECT id, event_id FROM jobs"))}
    causes = {one.event_id: ("HW.GPU.1", "SYS.1")[ids[one.event_id] % 2] for one in attempts}
    add(
        store,
        *(
            new(ids[one.event_id], job_id=one.event_id, lineage=one.event_id, cause=causes[one.event_id])
            for one in attempts
        ),
    )
    with engine_of(store).begin() as connection:
        connection.execute(text("UPDATE requests SET outcome = 'got_past' WHERE cause = 'SYS.1'"))
        connection.execute(text("UPDATE requests SET outcome = 'succeeded' WHERE cause <> 'SYS.1'"))
    expected: defaultdict[str, float] = defaultdict(float)
    for one in attempts:
        expected[causes[one.event_id]] += gpu_hours_rescued(
            "succeeded",
            result=None,
            gpus=one.gpus,
            started_at=one.started_at,
            ended_at=one.ended_at,
            gpu_hours_lost=one.gpu_hours_lost,
        )
    asked: list[str] = []
    with engine_of(store).connect() as connection:
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        assert rescued(connection) == pytest.approx(expected["HW.GPU.1"])
        assert rescued(connection, requests.c.cluster == "vega") == 0.0
        possible = rescuable(connection)
    assert {key: pytest.approx(one.gpu_hours) for key, one in possible.items()} == {
        ("orion", cause, "elsewhere"): hours for cause, hours in expected.items()
    }
    asked = [one for one in asked if "FROM requests" in one]
    assert len(asked) == 3
    assert all("sum(" in one for one in asked), "rows are read one by one"
