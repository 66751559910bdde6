"""The harmless node events and neutral log lines: their format, and that both halves hold every reason."""

from collections import Counter
from typing import Any

import pytest

from classifiers.data import noise_data
from classifiers.data.noise_data import REASONS, Use

WORDS_OF_HARM = (
    "Xid",
    "79",
    "48",
    "Out of memory",
    "Killed",
    "read-only",
    "NotReady",
    "DOWN",
    "Failure",
    "panic",
    "ECC",
)


def entry(**changes: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {"id": "a.b", "reason": "corrected", "events": [{"text": "one error, corrected"}]}
    return {"version": 1, "use": "fit", "source": "kernel", "basis": "manual", "entry": [{**raw, **changes}]}


def test_there_are_hundreds_of_entries_of_many_sources() -> None:
    entries = noise_data.node_entries()
    assert len(entries) >= 300
    assert len({one.source for one in entries}) >= 30
    assert len({one.family for one in entries}) >= 20


@pytest.mark.parametrize("use", ["fit", "measure"])
def test_each_half_holds_every_reason_and_every_place(use: Use) -> None:
    entries = noise_data.node_entries(use)
    assert len(entries) >= 0.4 * len(noise_data.node_entries())
    reasons = Counter(one.reason for one in entries)
    assert min(reasons[reason] for reason in REASONS) >= 5
    assert {one.where for one in entries} == {"own", "other", "other_job", "switch"}


def test_a_family_is_in_one_half_unless_its_entries_say_otherwise() -> None:
    families: dict[str, set[str]] = {}
    for one in noise_data.node_entries():
        families.setdefault(one.family, set()).add(one.use)
    assert {family for family, uses in families.items() if len(uses) > 1} <= {"survived_by_job"}


@pytest.mark.parametrize("use", ["fit", "measure"])
def test_no_text_is_in_both_halves(use: Use) -> None:
    other: Use = "measure" if use == "fit" else "fit"
    own = {" ".join(event.text for event in one.events) for one in noise_data.node_entries(use)}
    assert not own & {" ".join(event.text for event in one.events) for one in noise_data.node_entries(other)}


@pytest.mark.parametrize("word", WORDS_OF_HARM)
def test_harmless_events_have_serious_words(word: str) -> None:
    assert any(word in event.text for one in noise_data.node_entries() for event in one.events)


def test_an_entry_says_itself_why_it_is_harmless() -> None:
    for one in noise_data.node_entries():
        texts = " ".join(event.text for event in one.events)
        if one.reason == "other_job" and one.where == "own":
            assert "$other" in texts, one.id
        if one.reason == "other_node":
            assert one.where in {"other", "other_job", "switch"}, one.id
        if one.reason == "long_before_progress":
            assert one.when == "early", one.id
            assert "$job" in texts, one.id
        if one.reason == "repaired_before":
            assert one.when == "before", one.id


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"reason": "nice"}, "reason"),
        ({"where": "moon"}, "where"),
        ({"when": "soon"}, "when"),
        ({"events": []}, "events"),
        ({"events": [{"text": ""}]}, "text"),
        ({"events": [{"text": "a", "after": "5 minutes"}]}, "span"),
        ({"events": [{"text": "a", "after": "5m..1m"}]}, "span"),
        ({"reason": "repaired_before"}, "events"),
        ({"reason": "other_node"}, "where"),
        ({"distance": "1h..2h"}, "distance"),
        ({"use": "both"}, "use"),
        ({"id": "no group"}, "id"),
        ({"note": "x"}, "fields"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        noise_data.read_entries(entry(**changes), "family")


def test_a_correct_entry_is_read() -> None:
    [one] = noise_data.read_entries(entry(events=[{"text": "a"}, {"text": "b", "after": "1m..2h"}]), "family")
    assert [event.after for event in one.events] == [(0.0, 2.0), (60.0, 7_200.0)]
    assert {event.source for event in one.events} == {"kernel"}


@pytest.mark.parametrize("use", ["fit", "measure"])
def test_log_lines_have_every_role_in_each_half(use: Use) -> None:
    lines = noise_data.log_lines()
    assert {one.role for one in lines.groups if one.use == use} == {"banner", "progress", "survived", "cascade"}
    assert use in {one[-1] for one in lines.stamps}
    assert use in {one[-1] for one in lines.colours}
    assert use in {one[-1] for one in lines.bars}
