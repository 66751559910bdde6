"""A fault on the device that ends each attempt after the same step is the program's."""

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

FAULT = "RuntimeError: CUDA error: unspecified launch failure\n"


def attempt(*steps: int) -> str:
    return "".join(f"step {step} loss 2.1\n" for step in steps) + FAULT


def entries(log: str) -> set[str]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(log, stream="stderr"),))
    return {hit.id for item in EXTRACTOR.extract(raw).items for hit in item.hits if hit.role == "initiating"}


def test_attempts_that_end_after_the_same_step_show_a_fault_of_the_program() -> None:
    assert "cuda.fault-at-same-step" in entries(attempt(40, 41, 42) + "worker group starts again\n" + attempt(41, 42))


def test_attempts_that_end_after_other_steps_do_not() -> None:
    assert "cuda.fault-at-same-step" not in entries(attempt(40, 41, 42) + attempt(41, 42, 43, 44, 45))


def test_one_attempt_or_a_run_that_went_on_says_nothing() -> None:
    assert "cuda.fault-at-same-step" not in entries(attempt(40, 41, 42) + FAULT)
    assert "cuda.fault-at-same-step" not in entries(attempt(40, 41) + attempt(42, 43))
