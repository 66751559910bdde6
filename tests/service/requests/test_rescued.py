from datetime import UTC, datetime, timedelta

import pytest

from service.requests.repository.rescued import gpu_hours_rescued

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
    found = gpu_hours_rescued(outcome, gpus=gpus, started_at=started, ended_at=END, gpu_hours_lost=lost)
    assert found == rescued
    assert gpu_hours_rescued(outcome, gpus=gpus, started_at=None, ended_at=END, gpu_hours_lost=lost) == 0
