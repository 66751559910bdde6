"""A pod that replaces an evicted one and is evicted as well shows that another try does not help."""

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

USED = (
    "2m  Warning  Evicted  pod/fit-{}  The node was low on resource: memory. "
    "Container fit was using 71303168Ki, which exceeds its request of 1Gi."
)
PLACED = "1m  Normal  Scheduled  pod/fit-{0}  Successfully assigned lab/fit-{0} to node-4"
PRESSURE = "1m  Warning  Evicted  pod/fit-{}  The node had condition: [MemoryPressure]."


def is_again(*lines: str) -> bool:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines), stream="stderr"),))
    return any(hit.id == "kubernetes.evicted-again" for item in EXTRACTOR.extract(raw).items for hit in item.hits)


def test_a_replacement_that_is_evicted_too_shows_that_the_job_does_not_fit() -> None:
    assert is_again(USED.format("x7"), PLACED.format("k2"), PRESSURE.format("k2"))


def test_pods_beside_it_that_are_evicted_replaced_nothing() -> None:
    assert not is_again(USED.format("x7"), PRESSURE.format("k2"))
    assert not is_again(PLACED.format("x7"), USED.format("x7"))
    assert not is_again(USED.format("x7"), PLACED.format("k2"), PRESSURE.format("m9"))
