"""The last progress lines are found whatever their words are, so that overcome trouble is no beginning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_prefixes import sample_lines
from classifiers.extraction.progress_lines import ProgressLines

STEPS = {
    "plain": "step {0} loss {1:.3f}\n",
    "megatron": " iteration {0:8d}/ 90000 | consumed samples: {0:9d} | lm loss: {1:.6E} | loss scale: 1.0 |\n",
    "own words": "tick {0} :: energy={1:.4f} temperature=300.{0}\n",
    "json": '{{"rank": 0, "number": {0}, "objective": {1:.3f}}}\n',
}
TROUBLE = "upload of metrics failed (attempt 1/5): 503 Server Error\n"


def progress_of(text: str, ranks: int = 1) -> ProgressLines:
    return ProgressLines(text, lambda: (sample_lines(text), ranks))


@pytest.mark.parametrize("form", STEPS.values(), ids=STEPS)
def test_progress_continues_after_an_overcome_fault_and_not_after_the_end(form: str) -> None:
    steps = [form.format(number, 9 / (number + 1)) for number in range(400)]
    before, after = "".join(steps[:200]), "".join(steps[200:])
    text = before + TROUBLE + after + "KeyError: 'y'\n"
    progress = progress_of(text)
    assert progress.continues_after(len(before), process_ended=False)
    assert not progress.continues_after(len(text) - 14, process_ended=False)


def test_buffered_output_may_follow_the_last_error_of_a_process() -> None:
    steps = "".join(f"step {number} loss 1.0\n" for number in range(300))
    text = steps + "KeyError: 'y'\n" + "".join(f"step {number} loss 1.0\n" for number in range(300, 500))
    assert not progress_of(text).continues_after(len(steps), process_ended=True)
    assert progress_of(text).continues_after(len(steps), process_ended=False)


@pytest.mark.parametrize("stamp", ["", "2026-11-20T09:00:00.12{0}Z "])
def test_the_rows_of_a_table_are_no_progress(stamp: str) -> None:
    steps = "".join(f"step {number} loss 1.0\n" for number in range(60))
    held = [(771, 38.2), (769, 38.1), (770, 38.0), (772, 37.9), (640, 0.4)]
    rows = "".join(stamp.format(n) + f"{pid}\t{size}\tray::Worker.run\n" for n, (pid, size) in enumerate(held))
    text = steps + "MemoryError: the node is full\nPID\tGB\tCOMMAND\n" + rows + "the job was stopped by its owner\n" * 3
    assert not progress_of(text).continues_after(len(steps), process_ended=False)


def test_rulers_and_empty_lines_below_a_collectors_tag_are_no_progress() -> None:
    tag = "[pod/{}/main] 2026-11-20T09:{:02d}:0{}.5Z "
    parts = "".join(tag.format("fit", minute, 0) + f"loading part {minute}/40\n" for minute in range(40))
    report = ["KeyError: 'y'", "----", "", "[0]:", "====", "the report ends here", "----", "", "[1]:", "===="]
    lines = "".join(tag.format("fit", 41 + number // 5, number % 5) + line + "\n" for number, line in enumerate(report))
    assert not progress_of(parts + lines).continues_after(len(parts), process_ended=False)


def test_repeated_complaints_are_no_progress() -> None:
    text = "".join(f"error {number}: retry failed\n" for number in range(200))
    assert progress_of(text).last_offset() == 0


@pytest.mark.parametrize(
    "form",
    [
        "2026-11-20 10:{0:02d}:{1:02d} {2}\n",
        "2026-11-20T10:{0:02d}:{1:02d}.000Z INFO {2}\n",
        "I1120 10:{0:02d}:{1:02d}.482913       1 controller.go:77] {2}\n",
        "[2026-11-20 10:{0:02d}:{1:02d},250][trainer][INFO] - {2}\n",
    ],
    ids=["time", "UTC", "klog", "hydra"],
)
def test_lines_that_repeat_with_nothing_but_another_time_are_no_progress(form: str) -> None:
    times = [divmod(number, 60) for number in range(400)]
    waiting = "".join(form.format(*at, "pods ready 0/2, waiting") for at in times)
    assert progress_of(waiting).last_offset() == 0
    assert progress_of(waiting).last_time() is None
    assert not progress_of(TROUBLE + waiting).continues_after(0, process_ended=False)
    rising = "".join(form.format(*at, f"pods ready {number}/400, waiting") for number, at in enumerate(times))
    assert progress_of(rising).last_offset() > len(rising) // 2
    assert progress_of(TROUBLE + rising).continues_after(0, process_ended=False)


def test_lines_that_repeat_after_the_last_step_do_not_count_as_further_steps() -> None:
    times = [divmod(number, 60) for number in range(600)]
    steps = "".join(f"2026-11-20 10:{at[0]:02d}:{at[1]:02d} step {n} loss 1.0\n" for n, at in enumerate(times[:300]))
    waiting = "".join(f"2026-11-20 10:{at[0]:02d}:{at[1]:02d} pods ready 0/2, waiting\n" for at in times[300:])
    progress = progress_of(steps + TROUBLE + waiting)
    assert 0 < progress.last_offset() < len(steps)
    assert not progress.continues_after(len(steps), process_ended=False)


def test_source_lines_below_frames_of_many_ranks_are_no_progress() -> None:
    steps = "".join(f"[1,0]<stderr>:(0) step {number} loss 1.0\n" for number in range(30))
    ended = "".join(
        f"[1,{rank}]<stderr>:Traceback (most recent call last):\n"
        f'[1,{rank}]<stderr>:  File "train.py", line 7, in <module>\n[1,{rank}]<stderr>:    train(epoch)\n'
        f"[1,{rank}]<stderr>:RuntimeError: a peer left: {'x' * 900}\n"
        for rank in range(24)
    )
    text = steps + "KeyError: 'y'\n" + ended
    assert not progress_of(text).continues_after(len(steps), process_ended=True)


def test_the_time_of_the_last_progress_lines() -> None:
    text = "".join(f"2026-11-20 10:{number // 60:02d}:{number % 60:02d} step {number}\n" for number in range(600))
    last = progress_of(text).last_time()
    assert last is not None
    assert progress_of(text.replace("2026-11-20 ", "")).last_time() is None


@given(st.text(max_size=3_000), st.integers(0, 64))
def test_the_last_offset_is_within_any_text(text: str, ranks: int) -> None:
    assert 0 <= progress_of(text, ranks).last_offset() <= len(text)


def test_seconds_of_waiting_for_others_are_no_progress() -> None:
    waiting = "".join(f"[rank0] waiting for 1 more peer ({20 * number}/900 s)\n" for number in range(46))
    assert progress_of(waiting).last_offset() == 0


def test_the_latest_time_is_that_of_the_very_last_line_of_progress() -> None:
    steps = "".join(f"2026-09-01 08:{minute:02}:00 step {minute} loss 1.0\n" for minute in range(60))
    progress = ProgressLines(steps, lambda: ([steps.splitlines()[:20], steps.splitlines()[20:40]], 1))
    latest, about = progress.latest_time(), progress.last_time()
    assert latest == time_of("2026-09-01 08:59:00 x")
    assert about is not None
    assert about < (latest or 0.0)


def test_progress_lines_without_times_do_not_take_the_time_of_a_line_below() -> None:
    steps = "".join(f"step {number} loss 2\n" for number in range(60))
    progress = progress_of(f"{steps}[E1120 09:59:58.1 ProcessGroupNCCL.cpp:632] Watchdog caught collective timeout\n")
    assert progress.last_offset() > 0
    assert progress.last_time() is None
    assert progress.latest_time() is None
