"""The measures for drift monitoring: unknown words, lines without a signature, versions in logs."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.input_measures import measure, software_versions
from tests.classifiers.packaged_catalogue import EXTRACTOR


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu018:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4", ("NCCL 2.20.5", "CUDA 12.4")),
        (
            "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |",
            ("CUDA 12.4", "NVIDIA driver 550.54.15"),
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19", ("NVIDIA driver 535.104.05",)),
        ("NCCL version 2.19.3", ("NCCL 2.19.3",)),
        ("PyTorch Version 2.3.0a0+ebedce7", ("PyTorch 2.3.0",)),
        ("PyTorch version: 2.4.1+cu124", ("PyTorch 2.4.1",)),
        ("[INFO] [logging.py:96:log_dist] DeepSpeed info: version=0.14.2, git-hash=unknown", ("DeepSpeed 0.14.2",)),
        ('  "transformers_version": "4.40.0",', ("Transformers 4.40.0",)),
        ('File "/opt/venv/lib/python3.11/site-packages/torch/x.py", line 3, in f', ("Python 3.11",)),
        ("no version here: torch was not found, driver version unknown", ()),
    ],
)
def test_versions_are_read_where_programs_print_them(line: str, expected: tuple[str, ...]) -> None:
    assert software_versions([LogStream(f"start\n{line}\nend\n")]) == expected


def test_the_middle_of_a_long_log_is_not_searched() -> None:
    filler = "step 1 loss 2\n" * 3_000
    assert software_versions([LogStream(f"{filler}torch==2.4.0\n{filler}")]) == ()
    assert software_versions([LogStream(f"{filler}torch==2.4.0\n")]) == ("PyTorch 2.4.0",)


def test_lines_without_a_signature_are_counted() -> None:
    text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nFatal error: the flux capacitor is empty\n"
    streams = (LogStream(text),)
    extracted = EXTRACTOR.extract(RawCase(JobFacts("failed"), streams))
    found = measure(extracted, streams, 0.75)
    assert (found.unknown, found.lines, found.unmatched) == (0.25, 2, 1)
