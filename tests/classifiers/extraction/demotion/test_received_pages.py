"""A file that cannot be read is a consequence where its log shows the page that a server sent instead of it."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from tests.classifiers.packaged_catalogue import EXTRACTOR

PAGE = "<html><head><title>502 Bad Gateway</title></head>"
BROKEN = (
    "zipfile.BadZipFile: File is not a zip file",
    "sha256sum: WARNING: 2 computed checksums did NOT match",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "gzip: stdin: not in gzip format",
)


def items_of(*lines: str) -> list[EvidenceItem]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join(lines), stream="stderr"),))
    return EXTRACTOR.extract(raw).items


def beginnings(*lines: str) -> list[str]:
    return [item.text for item in items_of(*lines) if item.role == "initiating"]


@pytest.mark.parametrize("broken", BROKEN)
def test_the_page_of_a_server_comes_before_what_cannot_be_read(broken: str) -> None:
    assert beginnings(broken, "$ head -1 labels.dat", PAGE) == [PAGE]
    assert beginnings(PAGE, broken) == [PAGE]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_cannot_be_read_is_a_beginning_without_a_page(broken: str) -> None:
    assert beginnings(broken, "<html><head><title>labels of 502 gateways</title></head>") == [broken]


def test_a_page_explains_no_other_error() -> None:
    other = "KeyError: 'labels'"
    assert other in beginnings(PAGE, other)


def test_a_closing_tag_makes_no_path_of_the_word_before_it() -> None:
    assert beginnings("<h1>503 Service Unavailable</h1>") == ["<h1>503 Service Unavailable</h1>"]


def test_an_archive_that_a_broken_copy_left_is_a_consequence() -> None:
    copy = "curl: (18) transfer closed with 4711 bytes remaining to read"
    assert beginnings(copy, "tar: Unexpected EOF in archive")[0] == copy
    assert "tar: Unexpected EOF in archive" not in beginnings(copy, "tar: Unexpected EOF in archive")
