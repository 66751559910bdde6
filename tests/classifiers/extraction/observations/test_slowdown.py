"""Whether steps became slower, by logs that show only a few of them."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.observations.slowdown import slowed_between
from tests.classifiers.packaged_catalogue import EXTRACTOR


def log_of(*paces: str) -> str:
    return "starting\n" + "\n".join(f"step {number} {pace} loss 2.1" for number, pace in enumerate(paces)) + "\n"


@pytest.mark.parametrize(
    "paces",
    [
        ("time 0.91", "time 0.95", "time 4.2", "time 3.9"),
        ("400.1 ms/step", "2900.4 ms/step", "3100.0 ms/step"),
        ("dt=1.9s", "dt=4.1s", "dt=4.0s"),
        ("tok/s 51000", "tok/s 52000", "tok/s 7000", "tok/s 9000"),
        ("[00:10<00:20, 2.40it/s]", "[00:30<01:20, 2.20s/it]", "[00:50<01:20, 40.10s/it]"),
        ("410 ms/step", "2.9 s/step", "3.0 s/step"),
    ],
)
def test_a_few_printed_paces_show_that_steps_became_slower(paces: tuple[str, ...]) -> None:
    assert slowed_between(log_of(*paces)) == (None, None)


@pytest.mark.parametrize(
    "paces",
    [
        ("time 0.91", "time 0.95", "time 0.93", "time 1.02"),
        ("time 4.2", "time 0.9", "time 0.91"),  # the first steps took longer, as ever
        ("time 0.91", "time 0.95", "time 4.2"),  # one step is no slow-down
        ("time 0.91", "time 4.2", "time 0.9", "time 4.1"),
        ("tok/s 7000", "tok/s 52000", "tok/s 51000"),
        ("at 10:20:31", "at 20:20:31", "at 21:20:31"),
    ],
)
def test_steps_of_one_pace_are_no_slow_down(paces: tuple[str, ...]) -> None:
    assert slowed_between(log_of(*paces)) is None


def test_the_slow_down_lies_between_the_last_fast_and_the_first_slow_step() -> None:
    lines = [
        "2026-11-20 08:00:00 step 1 step_time=1.0",
        "2026-11-20 09:00:00 step 900 step_time=1.1",
        "2026-11-20 11:00:00 step 990 step_time=2.6",
        "2026-11-20 12:00:00 step 999 step_time=2.5",
    ]
    assert slowed_between("\n".join(lines)) == (time_of(lines[1]), time_of(lines[2]))


def test_steps_that_have_more_work_were_not_slowed_down() -> None:
    log = log_of("time 0.91", "time 0.95", "time 4.2", "time 3.9")
    assert slowed_between("sequence length 512 -> 4096\n" + log) is None


def test_a_log_of_many_steps_is_judged_by_its_usual_pace() -> None:
    assert slowed_between(log_of(*["time 0.9"] * 20, *["time 4.0"] * 20)) == (None, None)
    assert slowed_between(log_of(*["time 0.9", "time 4.0"] * 20)) is None


def test_a_run_that_waited_ever_longer_for_its_data_was_slowed_down() -> None:
    fast = "".join(f"2026-11-20 08:0{minute}:00 it {100 * minute} data 0.03s fwd 0.41s\n" for minute in range(4))
    slow = "".join(f"2026-11-20 1{hour}:00:00 it {900 + hour} data 2{hour}.10s fwd 0.41s\n" for hour in range(4))
    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T14:00:00 DUE TO TIME LIMIT ***\n"
    assert first_entry(fast + slow + limit) == "wordings.late-because-of-data"
    assert first_entry(slow + limit) == "slurm.time-limit"


def first_entry(log: str) -> str | None:
    found = EXTRACTOR.extract(RawCase(JobFacts("timeout"), (LogStream(log),)))
    return found.case.evidence[0].signature


@pytest.mark.parametrize("name", ["samples/s", "CurrSamplesPerSec", "RunningAvgSamplesPerSec", "tokens_per_second"])
def test_rates_are_read_by_the_names_that_programs_give_them(name: str) -> None:
    assert slowed_between(log_of(*(f"{name}={rate}" for rate in (212.0, 211.2, 27.7, 26.9)))) == (None, None)
