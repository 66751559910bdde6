"""Expressions without upper bounds are a first look only: what is found stays the same."""

from dataclasses import replace

import pytest
import re2

from classifiers import signatures
from classifiers.extraction.scan import Scanner
from classifiers.patterns.loose_patterns import least_opened_bound, without_upper_bounds
from classifiers.relevance import event_words
from classifiers.signatures import Catalogue, LinePattern


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"link[^\n]{0,60}down", r"link[^\n]{0,}down"),
        (r"\bport \w{2,40}?: (?:up|down){1,20}", r"\bport \w{2,}?: (?:up|down){1,}"),
        (r"\d{2,8} [0-9a-f]{12}", r"\d{2,8} [0-9a-f]{12}"),
        (r"a\{1,20}[{1,20}]b{1,20}", r"a\{1,20}[{1,20}]b{1,}"),
        (r"[]{1,20}]x{1,20}[^]\]{3,30}]", r"[]{1,20}]x{1,}[^]\]{3,30}]"),
        (r"\Qa{1,20}\Eb{1,20}", r"\Qa{1,20}\Eb{1,20}"),
    ],
)
def test_large_upper_bounds_are_opened_and_braces_in_classes_stay(pattern: str, expected: str) -> None:
    assert without_upper_bounds(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "bound"),
    [
        (r"link[^\n]{0,60}down in \d{1,8} s[^\n]{0,30}", 30),
        (r"a\{1,20}[{1,20}]b{1,8}", None),
        (r"\Qa{1,20}\Eb{1,20}", None),
    ],
)
def test_a_text_up_to_the_least_opened_bound_needs_no_second_search(pattern: str, bound: int | None) -> None:
    assert least_opened_bound(pattern) == bound
    assert (bound is None) == (without_upper_bounds(pattern) == pattern)


def test_the_loose_form_of_every_entry_matches_its_examples() -> None:
    entries = [(one.pattern.pattern, one.examples) for one in signatures.packaged().entries if one.pattern is not None]
    opened = [(without_upper_bounds(pattern), examples) for pattern, examples in entries]
    assert sum(loose != exact for (loose, _), (exact, _) in zip(opened, entries, strict=True)) > 100
    assert [loose for loose, examples in opened if not all(re2.search(loose, text) for text in examples)] == []


def test_entries_with_a_literal_in_common_keep_their_upper_bounds() -> None:
    packaged = signatures.packaged().entries
    near, far = (
        replace(packaged[0], id=f"test.{name}", literals=("pump",), pattern=LinePattern(pattern), when=None)
        for name, pattern in (("near", r"pump[^\n]{0,20}stopped"), ("far", r"pump[^\n]{0,40}stopped"))
    )
    scanner = Scanner(Catalogue((near, far), {near.id: near, far.id: far}))
    found = {
        gap: [hit.id for line in scanner.scan(f"pump{'-' * gap}stopped") for hit in line.hits]
        for gap in (20, 21, 40, 41)
    }
    assert found == {20: ["test.near", "test.far"], 21: ["test.far"], 40: ["test.far"], 41: []}


def test_what_reports_a_recovery_is_known_from_the_first_look() -> None:
    for pattern in (event_words.RECOVERY, event_words.REPAIR):
        assert without_upper_bounds(pattern.pattern) == pattern.pattern
