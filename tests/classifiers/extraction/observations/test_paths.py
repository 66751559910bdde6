"""What logs say of a path before a line of failure names it."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

REFUSED = "PermissionError: [Errno 13] Permission denied: '/proj/out/run7/epoch_9.pt'\n"
STALE = "OSError: [Errno 116] Stale file handle: '/corpus/de/part-0912.tar'\n"


def beginnings(text: str) -> set[str]:
    raw = RawCase(JobFacts(status="failed"), (LogStream(text, rank=0),))
    items = EXTRACTOR.extract(raw).items
    return {hit.id for item in items if item.role == "initiating" for hit in item.hits if hit.role == "initiating"}


@pytest.mark.parametrize(
    ("before", "is_lost"),
    [
        ("saved /proj/out/run7/epoch_8.pt (2.1 GB)\n", True),
        ("epoch 8 done, state written to /proj/out/run7/epoch_8.pt\n", True),
        ("could not be written: /proj/out/run7/epoch_8.pt\n", False),
        ("saved /proj/out/run6/epoch_8.pt (2.1 GB)\n", False),
        ("reading /proj/out/run7/config.json\n", False),
        ("saved /proj/out/run7/epoch_8.pt\n+ chmod -R a-w /proj/out/run7\n", False),
        ("", False),
    ],
)
def test_a_right_that_the_job_had_before_was_taken_by_something_else(before: str, *, is_lost: bool) -> None:
    found = beginnings(f"step 1 loss 2.0\n{before}step 2 loss 1.9\n{REFUSED}")
    assert ("paths.right-lost" in found, "python.permission" in found) == (is_lost, not is_lost)


@pytest.mark.parametrize(
    ("notice", "is_announced"),
    [
        ("*** scheduled maintenance on Thursday 10-12h: /corpus is moved to new servers ***\n", True),
        ("*** scheduled maintenance on Thursday 10-12h: /home is moved to new servers ***\n", False),
        ("reading /corpus/de\n", False),
    ],
)
def test_work_on_a_file_system_that_was_announced_explains_its_failure(notice: str, *, is_announced: bool) -> None:
    found = beginnings(f"{notice}step 1 loss 2.0\nstep 2 loss 1.9\n{STALE}")
    assert ("paths.of-announced-work" in found) is is_announced


def test_a_file_system_on_which_the_job_wrote_before_became_read_only() -> None:
    refused = "OSError: [Errno 30] Read-only file system: '/proj/out/run7/epoch_9.pt'\n"
    assert "paths.made-read-only" in beginnings(f"saved /proj/out/run7/epoch_8.pt (2.1 GB)\nstep 2 loss 1.9\n{refused}")
    assert beginnings(f"saved /tmp/run7/epoch_8.pt (2.1 GB)\nstep 2 loss 1.9\n{refused}") == {"python.read-only"}
