"""A wrong name in the code is wrong whatever the network does."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

IN_CODE = "Traceback (most recent call last):\n  File \"fit.py\", line 8, in <module>\nKeyError: 'warmup'"
LOST = (
    'Traceback (most recent call last):\n  File "fit.py", line 8, in <module>\n'
    "OSError: [Errno 5] Input/output error: '/nfs/set/a.bin'"
)


def first_line(*parts: str) -> str:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(parts), stream="stderr"),))
    return next(item.text for item in EXTRACTOR.extract(raw).items if item.role == "initiating")


@pytest.mark.parametrize(
    "report",
    [
        "but there are no active ports detected (or Open MPI was unable to use them).",
        "kernel: nfs: server nas7 not responding, still trying",
        "mlx5_1: link down on port 1",
    ],
)
def test_a_report_on_a_link_or_a_file_system_does_not_explain_an_error_in_the_code(report: str) -> None:
    assert first_line(report, IN_CODE).startswith("KeyError")


NO_FILE = 'Traceback (most recent call last):\n  File "fit.py", line 8, in <module>\nFileNotFoundError: no set/a.csv'


@pytest.mark.parametrize(
    ("report", "back"),
    [
        ("nfs: server nas7 not responding, still trying", "nfs: server nas7 OK"),
        ("mlx5_core 0000:3b:00.0 ib4: Link down", "mlx5_core 0000:3b:00.0 ib4: Link up"),
    ],
)
def test_what_is_back_before_does_not_explain_a_file_that_is_not_there(report: str, back: str) -> None:
    assert first_line(report, back, NO_FILE).startswith("FileNotFoundError")
    assert first_line(report, NO_FILE) == report
    other = back.replace("nas7", "nas8").replace("ib4", "ib5").replace("3b", "5e")
    assert first_line(report, other, NO_FILE) == report


def test_a_report_that_processes_felt_explains_what_they_say_as_they_end() -> None:
    report = "mlx5_core 0000:3b:00.0 ib4: Link down"
    assert first_line(report, "NCCL WARN NET/IB : Got completion from peer with status=12", IN_CODE) == report


def test_it_explains_files_that_cannot_be_read() -> None:
    report = "kernel: nfs: server nas7 not responding, timed out"
    assert first_line(report, LOST) == report


def test_damage_of_a_file_system_may_reach_the_code() -> None:
    report = "EXT4-fs error (device sdb1): ext4_lookup:1600: inode #7: comm python3: deleted inode referenced: 9"
    assert first_line(report, IN_CODE) == report
