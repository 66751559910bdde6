"""Memory that a program reports as growing until it is ended for it."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

ENDED = "slurmstepd: error: Detected 1 oom_kill event in StepId=8.0. Some of the step tasks have been OOM Killed.\n"
GROWS = (21.0, 34.5, 47.2, 61.0, 73.9, 88.1, 101.4)


def entries(report: str, sizes: tuple[float, ...]) -> set[str]:
    log = "".join(f"step {number}00 loss 2.0\n{report.format(size)}\n" for number, size in enumerate(sizes, 1))
    job = JobFacts(status="out_of_memory", nodes=("n1",))
    raw = RawCase(job, (LogStream(log + ENDED, rank=0, node="n1"),))
    return {hit.id for item in EXTRACTOR.extract(raw).items if item.role == "initiating" for hit in item.hits}


@pytest.mark.parametrize(
    ("report", "sizes", "grew"),
    [
        ("main process rss {} GiB", GROWS, True),
        ("host memory used: {} GB of 128 GB", GROWS, True),
        ("loader: rss={}G", GROWS, True),
        ("gpu memory: {} GiB", GROWS, False),
        ("peak rss {} GiB", GROWS, False),  # of a maximum, nothing else is to be expected
        ("main process rss {} GiB", (21.0, 60.2, 22.1, 59.0, 21.7, 60.0, 61.0), False),
        ("main process rss {} GiB", (60.0, 60.1, 60.1, 60.2, 60.2, 60.3, 60.3), False),
        ("main process rss {} GiB", GROWS[:4], False),
    ],
)
def test_memory_that_grows_from_report_to_report_is_the_programs_own(
    report: str, sizes: tuple[float, ...], *, grew: bool
) -> None:
    assert ("shell.memory-grew" in entries(report, sizes)) is grew
