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
