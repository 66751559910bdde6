"""Harmless lines of logs take no place of a line of the failure, and begin none."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_shapes import is_overcome
from classifiers.model.vectorizer import features

ERROR = "Traceback (most recent call last):\n  File \"fit.py\", line 3, in <module>\nKeyError: 'walrus'\n"


def case(log: str) -> RawCase:
    return RawCase(JobFacts("failed"), (LogStream(log),))


HARMLESS = [
    "sampler: 3 rounds, 0 failures, 0 errors",
    "scrubber: 0 old workers killed",
    "profile: 4 counters lost, tracing goes on",
    "lookup failed, the archive is reachable again",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_a_line_that_says_that_nothing_failed_is_no_evidence(extractor: Extractor, line: str) -> None:
    found = extractor.extract(case(f"{line}\n" * 2 + "ordinary line\n" * 400 + ERROR))
    assert not any(line in item.text for item in found.items)
    assert found.items[0].text == "KeyError: 'walrus'"


@pytest.mark.parametrize("line", HARMLESS)
def test_words_of_a_harmless_line_are_no_features(extractor: Extractor, line: str) -> None:
    alone = features(extractor.extract(case("ordinary line\n" * 400 + ERROR)))
    among = features(extractor.extract(case("ordinary line\n" * 200 + f"{line}\n" + "ordinary line\n" * 200 + ERROR)))
    assert {name for name in among if name.startswith("w:")} == {name for name in alone if name.startswith("w:")}


def test_what_a_log_ends_with_begins_the_failure_where_all_else_was_tried_again(extractor: Extractor) -> None:
    retried = "GET /weights: ReadTimeoutError: read timed out\nRetrying in 2s\n"
    notes = "".join(f"opened drawer {name}\n" for name in ("ash", "birch", "cedar", "elm"))
    found = extractor.extract(case(retried + notes + "the walrus table stays empty\n"))
    assert found.items[0].text == "the walrus table stays empty"
    assert found.items[0].role == "initiating"


@pytest.mark.parametrize(
    "text", ["lease lost, acquired again", "no such run, creating a new one", "save completed after backoff"]
)
def test_words_for_an_end_of_the_problem_mean_that_it_is_overcome(text: str) -> None:
    assert is_overcome(text)


@pytest.mark.parametrize("text", ["cannot be acquired", "creating the run failed", "no session", "what goes wrong"])
def test_other_words_mean_no_such_thing(text: str) -> None:
    assert not is_overcome(text)


def test_the_own_time_of_a_line_counts_behind_that_of_a_collector() -> None:
    own = time_of("2026-03-04 05:06:07,100 ERROR gone")
    assert time_of("2026-03-04T05:08:00Z stderr F 2026-03-04 05:06:07,100 ERROR gone") == own
    assert time_of("2026/03/04 05:08:00 [2026-03-04 05:06:07,100] ERROR gone") == own
    other_zone = "2026-03-04T05:08:00Z 2026-03-04 03:06:07 ERROR gone"
    assert time_of(other_zone) == time_of("2026-03-04T05:08:00Z")
