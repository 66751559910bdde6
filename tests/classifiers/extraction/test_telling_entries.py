"""Of several entries that fit a line, the one that knows more leads."""

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

EXTRACTOR = Extractor(Scanner(signatures.packaged()))


def entries_of_first_line(log: str) -> set[str]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(log, stream="stderr"),))
    first = next(item for item in EXTRACTOR.extract(raw).items if item.role == "initiating")
    return {hit.id for hit in first.hits if hit.role == "initiating" and not hit.id.startswith("events.")}


@pytest.mark.parametrize(
    ("log", "entry"),
    [
        (
            "RuntimeError: TPU initialization failed: open(/dev/vfio/2): Device or resource busy",
            "accelerators.device-held",
        ),
        ("RuntimeError: Unable to initialize backend 'tpu': Invalid TPU_HOST_BOUNDS", "accelerators.refused-setting"),
        ("libfabric error: queue not opened: Cannot allocate memory", "network.ib-memlock"),
        ("OSError: [Errno 23] Too many open files in system: '/a/b.tar'", "python.files-of-system"),
        ("OSError: [Errno 5] Input/output error: '/mnt/beegfs/a.bin'", "python.io-error-remote"),
    ],
)
def test_why_a_device_or_a_file_cannot_be_used_comes_before_that_it_cannot(log: str, entry: str) -> None:
    assert entries_of_first_line(log) == {entry}


def test_the_limit_of_locked_memory_leads_what_the_fabric_reports_besides() -> None:
    log = "NET/OFI: provider efa failed\nmemlock limits are set too low\nRuntimeError: unhandled system error"
    assert entries_of_first_line(log) == {"network.ib-memlock"}


def test_an_io_error_of_a_local_file_is_one_of_the_node() -> None:
    assert entries_of_first_line("OSError: [Errno 5] Input/output error: '/local/sets/a.bin'") == {"python.io-error"}
