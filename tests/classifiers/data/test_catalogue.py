"""The packaged catalogue as a whole: large, varied, sourced, and matched by training cases."""

import re

import pytest

from classifiers import signatures, taxonomy
from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction.scan import Scanner
from classifiers.signatures import Catalogue

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

LEAST = 400
MOST_ROWS = 150
MUST_FIRE = 0.6


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return signatures.packaged()


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def test_the_catalogue_is_large_and_not_mostly_rows_of_tables(catalogue: Catalogue) -> None:
    assert len(catalogue.entries) >= LEAST
    rows = [one for one in catalogue.entries if ".xid-" in one.id or re.search(r"Errno \d", one.examples[0])]
    assert len(rows) <= MOST_ROWS


def test_a_near_miss_shares_half_its_words_with_an_example(catalogue: Catalogue) -> None:
    far = [
        one.id
        for one in catalogue.entries
        if max(
            len(_words(miss) & _words(line)) / len(_words(miss)) for miss in one.near_misses for line in one.examples
        )
        < 0.5
    ]
    assert not far


def test_every_entry_names_its_source_and_says_something(catalogue: Catalogue) -> None:
    assert not [one.id for one in catalogue.entries if len(one.source) < 3]
    silent = [one.id for one in catalogue.entries if not (one.causes or one.categories or one.symptoms)]
    # Summaries of launchers tell that something ended, and nothing of why.
    assert all(catalogue.by_id[name].role == "teardown" for name in silent)


def test_every_cause_category_and_symptom_that_has_words_is_known_to_some_entry(catalogue: Catalogue) -> None:
    axes = taxonomy.load()
    causes = {code for one in catalogue.entries for code in one.causes}
    categories = {code for one in catalogue.entries for code in one.categories}
    symptoms = {code for one in catalogue.entries for code in one.symptoms}
    assert set(axes.causes) - causes == set()
    assert set(axes.categories) - categories == set()
    # Wrong metrics and odd behaviour have no message of their own: they are learned from whole cases.
    assert set(axes.symptoms) - symptoms <= {"C.3", "D.2.4", "D.2.6"}


@pytest.mark.slow
def test_most_entries_match_training_cases(
    catalogue: Catalogue, composed_cases: list[LabelledCase], packaged_cases: list[LabelledCase]
) -> None:
    scanner = Scanner(catalogue)
    heard: set[str] = set()
    for case in (*composed_cases, *packaged_cases):  # composed ones match most, and usually are enough
        if len(heard) >= MUST_FIRE * len(catalogue.entries):
            return
        texts = [stream.text for stream in case.raw.streams] + [event.text for event in case.raw.node_events]
        heard.update(hit.id for text in texts for found in scanner.scan(text) for hit in found.hits)
    silent = sorted(one.id for one in catalogue.entries if one.id not in heard)
    pytest.fail(f"{len(silent)} entries match no training case: {', '.join(silent)}")
