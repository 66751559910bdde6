from datetime import UTC, datetime

import pytest

from classifiers.extraction import training_progress


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("iteration 200/500 loss 1", 200),
        ("[trainer] step=17 loss=2", 17),
        ("{'global_step': 31, 'loss': 2}", 31),
        ("Epoch 3 batch 40: loss 1", 40),
        ("step time 300 ms", None),
        ("no number", None),
    ],
)
def test_steps_are_read_as_frameworks_write_them(line: str, step: int | None) -> None:
    assert training_progress.step_of(line) == step


def test_the_last_step_and_checkpoint_are_found() -> None:
    found = training_progress.find_progress(["step 1\nsaved checkpoint to /ckpt/step_1.pt\nstep 2\nboom\n", "step 1\n"])
    assert found is not None
    assert (found.step, found.checkpoint) == (2, "/ckpt/step_1.pt")
    assert training_progress.find_progress(["boom"]) is None


def test_landmarks_only_decide_whether_a_checkpoint_is_searched() -> None:
    texts = ["step 7\nsaved checkpoint to /ckpt/step_1.pt\n"]
    assert training_progress.find_progress(texts, [{"checkpoint", "ckpt"}]) == training_progress.find_progress(texts)
    nothing = ["step 7\nsaved to /data\n"]
    assert training_progress.find_progress(nothing, [set()]) == training_progress.find_progress(nothing)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-11-20T03:14:57 rank 3 step 12 loss 2", datetime(2026, 11, 20, 3, 14, 57, tzinfo=UTC)),
        ("[2026-11-20 03:14:57,250] step 12", datetime(2026, 11, 20, 3, 14, 57, 250_000, tzinfo=UTC)),
        ("2026-11-20T03:14:57+01:00 step 12", datetime(2026, 11, 20, 2, 14, 57, tzinfo=UTC)),
        ("2026-19-20T03:14:57 step 12", None),
        ("step 12", None),
    ],
)
def test_the_time_of_the_last_step_is_that_of_its_line(line: str, at: datetime | None) -> None:
    found = training_progress.find_progress(
        [f"2026-11-20T01:00:00 step 11\n{line}\n2026-11-20T09:00:00 watchdog timeout\n"]
    )
    assert found is not None
    assert (found.step, found.at) == (12, at)


def test_the_time_of_a_checkpoint_is_not_known() -> None:
    found = training_progress.find_progress(["2026-11-20T01:00:00 step 11\nsaved checkpoint to /ckpt/step_1.pt\n"])
    assert found is not None
    assert found.at is None
