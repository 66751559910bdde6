"""A message that a device has no memory left says who holds it."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

OLD = "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 15.90 GiB total capacity; {})"
NEW = "torch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity of 39.50 GiB of which 0.5 GiB is free. {}"
OWN = (
    OLD.format("8.10 GiB already allocated; 0.70 GiB free; 6.40 GiB cached"),
    OLD.format("8.10 GiB already allocated; 0.70 GiB free; 14.30 GiB reserved in total by PyTorch"),
    NEW.format("Including non-PyTorch memory, this process has 38.10 GiB memory in use."),
    NEW.format(
        "Process 71 has 38.90 GiB memory in use. Of the allocated memory 35.10 GiB is allocated by PyTorch, "
        "and 812.00 MiB is reserved by PyTorch but unallocated."
    ),
)
OTHERS = (
    OLD.format("0.40 GiB already allocated; 0.02 GiB free; 0.60 GiB reserved in total by PyTorch"),
    NEW.format("Including non-PyTorch memory, this process has 812.00 MiB memory in use."),
    NEW.format("Process 71 has 38.90 GiB memory in use. Of the allocated memory 5.10 GiB is allocated by PyTorch."),
    "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB",
)


def is_own(*lines: str) -> bool:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines), stream="stderr"),))
    return any(hit.id == "pytorch.oom-held-by-self" for item in EXTRACTOR.extract(raw).items for hit in item.hits)


@pytest.mark.parametrize("line", OWN)
def test_a_program_that_holds_nearly_all_needs_less_itself(line: str) -> None:
    assert is_own(line)


@pytest.mark.parametrize("line", OTHERS)
def test_a_program_that_holds_little_or_does_not_say_may_lack_it_for_others(line: str) -> None:
    assert not is_own(line)


def test_one_process_with_little_leaves_it_open_for_all() -> None:
    assert not is_own(OWN[0], OTHERS[0])


@pytest.mark.parametrize("more", ["", "no job: process 71"])
@pytest.mark.parametrize("number", ["2..0", "79.1.5", "...", "9" * 400])
def test_a_size_that_is_no_number_is_no_size(number: str, more: str) -> None:
    for line in (OLD, NEW, NEW.replace("39.50", number), NEW.replace("0.5", number)):
        text = line.replace("1.00", number)
        for held in ("38.90", number):
            said = text.format(f"Tried to allocate {number} GiB. Process 71 has {held} GiB memory in use.")
            raw = RawCase(job=JobFacts("failed", scheduler="slurm"), streams=(LogStream(f"{said}\n{more}"),))
            assert any(hit.id == "pytorch.cuda-oom" for item in EXTRACTOR.extract(raw).items for hit in item.hits)


def is_of_others(line: str, scheduler: str | None = "slurm") -> bool:
    raw = RawCase(job=JobFacts("failed", scheduler=scheduler), streams=(LogStream(line, stream="stderr"),))
    return any(hit.id == "pytorch.oom-held-by-others" for item in EXTRACTOR.extract(raw).items for hit in item.hits)


SMALL = "0.40 GiB already allocated; 0.02 GiB free; 0.60 GiB reserved in total by PyTorch"


def test_others_hold_a_device_of_which_the_program_has_little_and_nothing_is_free() -> None:
    line = OLD.format(SMALL).replace("GPU 0", "GPU 2")
    assert is_of_others(line)
    assert not is_of_others(line, scheduler=None)  # the user may have started the other program too
    assert not is_of_others(line.replace("0.02 GiB free", "12.02 GiB free"))
    assert not is_of_others(line.replace("0.60 GiB reserved", "8.60 GiB reserved"))


def test_a_full_first_device_may_be_full_of_the_jobs_own_processes() -> None:
    assert not is_of_others(OLD.format(SMALL))
