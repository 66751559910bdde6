"""What the kernel reported long before the program's own error did not cause it."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

LOST = "NVRM: Xid (PCI:0000:41:00): 79, pid=7, name=python3, GPU has fallen off the bus."


def first_line(*lines: str) -> str:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines), stream="stderr"),))
    return next(item.text for item in EXTRACTOR.extract(raw).items if item.role == "initiating")


@pytest.mark.parametrize(
    ("date", "error", "leads"),
    [
        ("Thu May  1 08:00:00 2025", "2025-05-09 08:00:00 ERROR KeyError: 'warmup'", False),
        ("Fri May  9 07:59:00 2025", "2025-05-09 08:00:00 ERROR KeyError: 'warmup'", True),
        ("Thu May  1 08:00:00 2025", "2025-05-09 08:00:00 ERROR RuntimeError: CUDA error: unknown error", True),
        ("Thu May  1 08:00:00 2025", "KeyError: 'warmup'", True),
    ],
    ids=["days before", "a minute before", "an error that the device can cause", "no time"],
)
def test_a_report_days_before_an_error_in_the_code_is_no_beginning(date: str, error: str, *, leads: bool) -> None:
    assert first_line(f"[{date}] {LOST}", error).endswith(LOST) == leads
