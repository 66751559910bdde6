from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import LogStream
from classifiers.extraction import training_progress
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.observations.slow_nodes import slow_nodes
from classifiers.extraction.stream_reader import StreamText


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("iteration 200/500 loss 1", 200),
        ("[trainer] step=17 loss=2", 17),
        ("{'global_step': 31, 'loss': 2}", 31),
        ("Epoch 3 batch 40: loss 1", 40),
        ("Global_step 8, num_updates 9: done", 9),
        ("batch 12 of iteration 11, updated 40 files", 11),
        ("шаг: step 5", 5),
        ("stepping 7", None),
        ("step time 300 ms", None),
        ("no number", None),
        ("slurmstepd: error: *** STEP 888244.0 ON gpu024 CANCELLED AT 2026-11-27T21:08:05 DUE TO PREEMPTION ***", None),
        ("step 7 on rank 3", 7),
    ],
)
def test_steps_are_read_as_frameworks_write_them(line: str, step: int | None) -> None:
    assert training_progress.step_of(line) == step


def test_the_last_step_and_checkpoint_are_found() -> None:
    found = training_progress.find_progress(["step 1\nsaved checkpoint to /ckpt/step_1.pt\nstep 2\nboom\n", "step 1\n"])
    assert found is not None
    assert (found.step, found.checkpoint) == (2, "/ckpt/step_1.pt")
    assert training_progress.find_progress(["boom"]) is None
    slurm = "step 41\nslurmstepd: error: *** STEP 888244.0 ON gpu024 CANCELLED AT 2026-11-27T21:08:05 ***\n"
    found = training_progress.find_progress([slurm])
    assert found is not None
    assert found.step == 41


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


MEGATRON = (
    " iteration {0:8d}/   90000 | consumed samples: 409600 | elapsed time per iteration (ms): 9120.4 "
    "| lm loss: 2.1E+00 | number of skipped iterations:   {1} | number of nan iterations:   {1} |"
)


@pytest.mark.parametrize("skipped", [0, 3, 9999])
def test_counts_of_skipped_iterations_are_no_steps(skipped: int) -> None:
    line = MEGATRON.format(200, skipped)
    assert training_progress.step_of(line) == 200
    found = training_progress.find_progress([f"{MEGATRON.format(100, skipped)}\n{line}\n"])
    assert found is not None
    assert found.step == 200


@pytest.mark.parametrize("words", ["number of skipped iterations: 4", "number of nan iterations: 4"])
def test_a_line_of_skipped_iterations_alone_shows_no_step(words: str) -> None:
    assert training_progress.step_of(words) is None
    assert training_progress.find_progress([f"{words}\n"]) is None


def steps_that_take(seconds: Sequence[int], form: str = "{at:%Y-%m-%d %H:%M:%S} step {step} loss 2.0\n") -> str:
    at, lines = datetime(2026, 11, 20, 9, tzinfo=UTC), []
    for step, takes in enumerate([*seconds, 0]):
        lines.append(form.format(at=at, step=step))
        at += timedelta(seconds=takes)
    return "".join(lines)


@pytest.mark.parametrize(
    "seconds",
    [
        [10] * 20,
        [10] * 10 + [20] * 10,
        [10] * 10 + [90] + [10] * 10,
        [10] * 10 + [90] * 4 + [10] * 20,
        [10] * 10 + [90] * 2,
        [10] * 2 + [90] * 3,
        [90] * 10 + [10] * 10,
    ],
    ids=["steady", "little slower", "one pause", "some pauses", "too few since", "too few before", "faster"],
)
def test_steps_that_do_not_stay_several_times_slower_are_no_slow_down(seconds: list[int]) -> None:
    assert training_progress.slowed_since(steps_that_take(seconds)) is None


def test_a_slow_down_begins_with_the_first_step_that_takes_several_times_as_long() -> None:
    assert training_progress.slowed_since(steps_that_take([10] * 10 + [40] * 10)) == time_of("2026-11-20 09:01:40 step")
    assert training_progress.slowed_since(steps_that_take([10, 12, 11, 35, 35, 36])) == time_of("2026-11-20 09:00:33 x")


def test_logs_without_times_or_steps_show_no_slow_down() -> None:
    seconds = [10] * 10 + [40] * 10
    assert training_progress.slowed_since(steps_that_take(seconds, "step {step} loss 2.0\n")) is None
    assert training_progress.slowed_since(steps_that_take(seconds, "{at:%Y-%m-%d %H:%M:%S} loss 2.0\n")) is None


def test_skipped_iterations_do_not_hide_a_slow_down() -> None:
    form = "[{at:%Y-%m-%d %H:%M:%S}]" + MEGATRON.format(0, 0).replace("       0/", " {step:8d}/")
    assert training_progress.slowed_since(steps_that_take([10] * 10 + [40] * 10, form + "\n")) is not None


def test_the_count_of_a_progress_bar_tells_a_slow_down() -> None:
    form = "{at:%Y-%m-%dT%H:%M:%S}Z  12%|#2  | {step}/9000 [10:00<1:00:00]\n"
    assert training_progress.slowed_since(steps_that_take([10] * 10 + [40] * 10, form)) is not None


@pytest.mark.parametrize(
    ("early", "late", "slowed"),
    [("2.10s/it", "9.80s/it", True), ("3.00it/s", "2.00s/it", True), ("2.10s/it", "2.90s/it", False)],
)
def test_the_printed_rates_of_a_progress_bar_tell_a_slow_down(early: str, late: str, *, slowed: bool) -> None:
    text = "".join(f"train: {n}/90 [00:10<00:50, {early if n < 10 else late}]\n" for n in range(20))
    assert training_progress.has_slowed(text) is slowed


@pytest.mark.parametrize(
    ("notice", "is_more"),
    [
        ("schedule: max sequence length 1024 -> 4096", True),
        ("schedule: batch size goes from 8 to 64", True),
        ("unfroze the encoder", True),
        ("schedule: max sequence length 4096 -> 1024", False),
        ("checkpoint 4 -> /ckpt/step_10", False),
    ],
)
def test_a_program_that_gives_each_step_more_work_is_noticed(notice: str, *, is_more: bool) -> None:
    steps = steps_that_take([10] * 10 + [40] * 10).splitlines(keepends=True)
    at_the_time = "".join([*steps[:11], notice + "\n", *steps[11:]])
    assert training_progress.has_more_work(at_the_time) is is_more
    assert training_progress.has_slowed(at_the_time)
    assert not training_progress.has_more_work("".join([*steps[:4], notice + "\n", *steps[4:]]))
    assert not training_progress.has_more_work(steps_that_take([10] * 20) + notice)


def naming(*ranks: int, form: str = "slowest rank {rank}: 8.2 s, median 1.1 s\n") -> StreamText:
    text = "".join(form.format(rank=rank) for rank in ranks)
    return StreamText(0, text, LogStream(text, rank=0, node="cn1"), [])


def test_the_node_of_a_rank_that_is_named_again_and_again_is_slow() -> None:
    other = StreamText(1, "", LogStream("", rank=9, node="cn2.site"), [])
    nodes = frozenset({"cn1", "cn2"})
    assert slow_nodes([naming(9, 9, 9, 9), other], nodes) == {"cn2"}
    assert slow_nodes([naming(9, 9), other], nodes) == frozenset()
    assert slow_nodes([naming(9, 3, 9, 4, 9, 1), other], nodes) == frozenset()
    assert slow_nodes([naming(9, 9, 9)], nodes) == frozenset()
    assert slow_nodes([naming(9, 9, 9)], frozenset({"cn1"})) == {"cn1"}


def test_the_node_that_stands_beside_the_slowest_rank_is_slow() -> None:
    lines = naming(9, 9, 9, form="straggler: rank {rank} on cn2, 7 times the median\n")
    assert slow_nodes([lines], frozenset({"cn1", "cn2"})) == {"cn2"}


@pytest.mark.parametrize("pace", ["time/step 16.31s", "16 s/step", "step time 16.31 sec"])
def test_the_duration_of_a_step_is_not_its_number(pace: str) -> None:
    assert training_progress.step_of(f"step 1960 loss 2.68 {pace} (data 13.0 s)") == 1960


def test_a_run_that_prints_how_long_its_steps_took_has_slowed_down() -> None:
    lines = [f"2026-11-20 10:{n:02}:00 loss 2.5 time/step {2.0 if n < 20 else 16.0}s\n" for n in range(40)]
    assert training_progress.has_slowed("".join(lines))
    assert not training_progress.has_slowed("".join(lines[:20]))


@pytest.mark.parametrize(
    ("line", "usual", "late", "slowed"),
    [
        ("{at} ups={rate:.2f} loss 2.0", 0.4, 0.03, True),
        ("{at} loss 2.0, {rate:.0f} tokens/s", 9_000, 800, True),
        ("{at} loss 2.0 throughput: {rate:.0f}", 9_000, 800, True),
        ("{at} loss 2.0, {rate:.0f} tokens/s", 9_000, 7_000, False),
        ("{at} read 4 files at /data/{rate:.0f}/s1", 9_000, 800, False),
    ],
)
def test_rates_that_lines_print_tell_a_slow_down(line: str, usual: float, late: float, *, slowed: bool) -> None:
    rates = [usual] * 8 + [late] * 8
    text = "".join(
        line.format(at=f"2026-11-20 09:{minute:02}:00", rate=rate) + "\n" for minute, rate in enumerate(rates)
    )
    assert (training_progress.slowed_since(text) is not None) is slowed


def test_a_slow_down_is_dated_by_what_shows_it_first() -> None:
    form = "{at:%Y-%m-%d %H:%M:%S} step {step} | elapsed time per iteration (ms): "
    lines = steps_that_take([60] * 12 + [600] * 12, form + "\n").splitlines()
    printed = [f"{line}{1000.0 if number < 6 else 9000.0}" for number, line in enumerate(lines)]
    since = training_progress.slowed_since("\n".join(printed))
    assert since is not None
    assert since < (training_progress.slowed_since("\n".join(lines)) or 0.0)


@pytest.mark.parametrize("line", ["[2026-11-20 09:{:02d}:00] [INFO] step={}\nsteps: {} iter time (s): {}\n"])
def test_a_duration_on_a_line_without_a_time_is_of_the_time_of_the_line_before(line: str) -> None:
    log = "".join(line.format(number, number, number, 6.1 if number < 20 else 61.0) for number in range(40))
    since = training_progress.slowed_since(log)
    assert since == time_of("2026-11-20 09:20:00")


@pytest.mark.parametrize(
    ("log", "last"),
    [
        (
            "2026-11-20 09:01:00 step 10 loss 2.1\n2026-11-20 09:02:00 step 20 loss 2.0\nno new step\n",
            "2026-11-20 09:02:00",
        ),
        ("2026-11-20 09:01:00 step 10 loss 2.1\nno new step\n", None),
        ("2026-11-20 09:01:00 step 10 loss 2.1\n2026-11-20 09:02:00 step 5 resumed\n", None),
        ("step 10 loss 2.1\nstep 20 loss 2.0\n", None),
        ("x" * 7_000 + "\n2026-11-20 09:01:00 step 10\n2026-11-20 09:02:00 step 20\n", None),
    ],
)
def test_the_last_step_of_a_short_log_needs_two_lines_that_name_growing_steps(log: str, last: str | None) -> None:
    assert training_progress.last_step_time(log) == (None if last is None else time_of(last))
