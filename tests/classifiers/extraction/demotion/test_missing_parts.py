"""What a job does not find because an earlier step failed is a consequence of that step."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.model.vectorizer import features
from tests.classifiers.packaged_catalogue import EXTRACTOR

NO_SCRIPT = "/usr/bin/python3: can't open file '{path}': [Errno 2] No such file or directory"
NO_DATA = "FileNotFoundError: [Errno 2] No such file or directory: '/local/set/part-3.csv'"
NOT_ENTERED = "slurmstepd: error: couldn't chdir to `/proj/lea': Stale file handle: going to /tmp instead"


def items_of(*lines: str) -> list[EvidenceItem]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines), stream="stderr"),))
    return EXTRACTOR.extract(raw).items


def first_line(*lines: str) -> str:
    return next(item.text for item in items_of(*lines) if item.role == "initiating")


@pytest.mark.parametrize("path", ["fit.py", "/tmp/fit.py", "/proj/lea/fit.py"])
def test_a_file_of_a_directory_that_could_not_be_entered_is_a_consequence(path: str) -> None:
    assert first_line(NOT_ENTERED, NO_SCRIPT.format(path=path)) == NOT_ENTERED


def test_a_file_elsewhere_is_missing_whatever_the_working_directory_is() -> None:
    script = NO_SCRIPT.format(path="/opt/lab/fit.py")
    assert first_line(NOT_ENTERED, script) == script


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        ("rsync error: error in socket IO (code 10) at clientserver.c(125)", NO_DATA),
        ("wget: unable to resolve host address 'sets.lab'", NO_DATA),
        ("mount.nfs: Connection timed out", NO_DATA),
        ("fatal: unable to access 'https://code.lab/fit.git/': Could not resolve host: code.lab", NO_DATA),
        ("ERROR: Could not find a version that satisfies the requirement einopz", "No module named 'einopz'"),
        ("E: Failed to fetch http://deb.lab/sox.deb  503  Service Unavailable", "sox: command not found"),
    ],
)
def test_what_a_failed_copy_or_installation_should_have_brought_is_a_consequence(step: str, missing: str) -> None:
    missing = f"ModuleNotFoundError: {missing}" if "module" in missing else missing
    assert first_line(step, missing) == step


def test_a_step_that_brings_something_else_explains_nothing() -> None:
    copied = "rsync error: error in socket IO (code 10) at clientserver.c(125)"
    module = "ModuleNotFoundError: No module named 'einopz'"
    assert any(item.role == "initiating" and item.text == module for item in items_of(copied, module))
    assert first_line(NO_DATA, copied) == NO_DATA  # nor one that fails later


def test_the_words_of_what_is_missing_say_nothing_of_the_cause() -> None:
    raw = RawCase(
        job=JobFacts(status="failed"),
        streams=(LogStream("mount.nfs: Connection timed out\n" + NO_DATA, stream="stderr"),),
    )
    found = features(EXTRACTOR.extract(raw))
    assert "w:timed" in found
    assert "s:python.file-not-found" not in found
    assert "w:part-3" not in found
    assert "w:directory" not in found
