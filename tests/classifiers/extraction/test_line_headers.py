from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction import line_headers


@pytest.mark.parametrize(
    ("line", "rank", "message"),
    [
        ("[rank3]: RuntimeError: x", 3, "RuntimeError: x"),
        ("[1,12]<stderr>:Traceback", 12, "Traceback"),
        ("[1,mpirank:12,algo-2]<stderr>:Traceback", 12, "Traceback"),  # SageMaker
        ("2026-01-02T16:13:44.884Z: [1,5]<stdout>:boom", 5, "boom"),
        ("[default1]:error", 1, "error"),
        ("[rank: 2] Child process", 2, "Child process"),
        ("(train_fn pid=471, ip=10.0.0.7) ValueError: x", None, "ValueError: x"),
        ("gpu7:100:120 [3] NCCL WARN Cuda failure", None, "NCCL WARN Cuda failure"),
        ("llm-worker-4: ValueError: x", 4, "ValueError: x"),
        ("RuntimeError: x", None, "RuntimeError: x"),
        ("2026-11-21T10:55:25.123456789Z stderr F Traceback", None, "Traceback"),
        ("Nov 21 10:55:25 gpu7 python[3107]: ValueError: x", None, "ValueError: x"),
        ("Nov 21 10:55:25 | [default1]:[rank1]: boom", 1, "boom"),
        ("2026-11-21 10:55:25 stdout Flushed", None, "stdout Flushed"),
    ],
)
def test_launcher_headers_are_separated_from_the_message(line: str, rank: int | None, message: str) -> None:
    header = line_headers.parse_header(line)
    assert header.rank == rank
    assert line[header.message_start :] == message


def test_the_device_and_host_of_an_nccl_line() -> None:
    header = line_headers.parse_header("gpu7:100:120 [3] NCCL WARN Cuda failure")
    assert (header.host, header.gpu) == ("gpu7", 3)


def test_srun_labels_are_ranks_only_when_the_whole_stream_has_them() -> None:
    text = "0: step 1\n1: step 1\n2: KeyError: 'x'\n"
    assert line_headers.has_rank_labels(text)
    assert line_headers.parse_header("2: KeyError: 'x'", labelled=True).rank == 2
    assert not line_headers.has_rank_labels("epoch\n3: x\nloss\nacc\n")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-11-20 03:41:57,100 x", "2026-11-20 03:41:57,200 x"),
        ("E1120 03:41:11.061727749 x", "2026-11-20T03:41:12Z x"),
        ("Nov 20 03:41:57 node kernel: x", "Nov 21 00:00:01 node kernel: x"),
        ("  time      : 2026-11-20_03:41:55", "  time      : 2026-11-20_03:41:57"),
    ],
)
def test_times_in_different_formats_can_be_compared(earlier: str, later: str) -> None:
    first, second = line_headers.time_of(earlier), line_headers.time_of(later)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize(
    ("end", "lines"),
    [
        (datetime(2027, 1, 1, tzinfo=UTC), ("2026-12-31 23:59:59 x", "2027-01-01 00:00:00 x")),
        (datetime(2026, 12, 31, 20, tzinfo=UTC), ("E1231 23:59:59.5 x", "Jan  1 00:00:00 node kernel: x")),
        (datetime(2027, 6, 30, tzinfo=UTC), ("2027-02-28 23:59:59 x", "2027-03-01 00:00:00 x")),
        (datetime(2028, 3, 1, tzinfo=UTC), ("2028-02-29 23:59:59 x", '{"ts": 1835481600.0}')),
    ],
)
def test_times_around_new_year_and_the_end_of_february_are_a_second_apart(
    end: datetime, lines: tuple[str, str]
) -> None:
    with line_headers.in_year_of(end):
        first, second = (line_headers.time_of(line) for line in lines)
    assert first is not None
    assert second is not None
    assert 0 < second - first <= 1


@pytest.mark.parametrize("year", [1, 9999])
def test_ends_at_the_limits_of_the_calendar_are_read(year: int) -> None:
    with line_headers.in_year_of(datetime(year, 12, 31, tzinfo=UTC)):
        assert line_headers.time_of("2026-12-31 23:59:59 x") is not None


def test_a_line_without_a_time_has_none() -> None:
    assert line_headers.time_of("loss: 1.2, acc: 3, lr: 4") is None


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[E] [Rank 3] Watchdog caught collective operation timeout", 3),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 9] Timeout at NCCL work", 9),
        ("stopping, rank=7 failed", 7),
        ("no number of a process here", None),
    ],
)
def test_the_rank_that_a_message_names_is_read(line: str, rank: int | None) -> None:
    assert line_headers.rank_in_message(line) == rank


def test_terminal_colours_are_removed() -> None:
    assert line_headers.strip_colors("\x1b[31mERROR\x1b[0m x") == "ERROR x"


@given(st.text())
def test_any_line_has_a_header(line: str) -> None:
    header = line_headers.parse_header(line)
    assert 0 <= header.message_start <= len(line)
    line_headers.time_of(line)
    line_headers.rank_in_message(line)


def test_the_time_of_a_level_with_month_and_day_is_read() -> None:
    line = "(EngineCore pid=81) ERROR 12-01 08:09:10 [core.py:71] the engine failed"
    assert line_headers.time_of(line) == line_headers.time_of("2026-12-01 08:09:10 the engine failed")


@pytest.mark.parametrize("stamp", ["1780000000", "1780000000.250", "[1780000000]", "[1780000000.250]"])
def test_a_line_may_begin_with_seconds_since_1970(stamp: str) -> None:
    line = f"{stamp} KeyError: 'rate'"
    assert line_headers.without_time(line) == "KeyError: 'rate'"
    assert line[line_headers.parse_header(line).message_start :] == "KeyError: 'rate'"
    expected = line_headers.time_of("2026-05-28T20:26:40 x")
    assert expected is not None
    assert line_headers.time_of(line) == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("line", ["1780000000", "17800000001 rows", "1780 rows", "1e9 rows"])
def test_other_numbers_are_no_times(line: str) -> None:
    assert line_headers.time_of(line) is None
    assert line_headers.without_time(line) == line


@pytest.mark.parametrize("before", ["x ", "| "])  # behind it, the stamp is found by its expression
@pytest.mark.parametrize(
    "line",
    [
        "2026-11-01 08:12:33,125 INFO step 3",
        "2026/11/01T08:12:33 train",
        "2026-11-01_08:12:33.123456789 loss",
        "2026-11-01 08:12:33. loss",
        "2026-11-01 08:12:33.1234567891 loss",
        "2026-02-29 23:59:60 a leap",
        "2026-13-01 08:12:33 no month",
        "2026-11-01T08:12:33Z stdout F 2026-11-01T08:12:30 step",
        "2026-11-01 08:12:33 stderr F 2026-11-01 08:12:30 step",
        "2026-11-01 08:12:33 2026-11-01 08:12:30 step",
        "2026-11-01 08:12:33 I1101 08:12:30 step",
        "2026-11-01 08:12:3 INFO",
        "2026-11-01 08:12:33,12\u0663 INFO",
    ],
)
def test_the_stamp_at_the_start_of_a_line_is_read_as_anywhere(line: str, before: str) -> None:
    assert line_headers.time_of(line) == line_headers.time_of(before + line)
