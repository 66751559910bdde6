from classifiers import signatures
from classifiers.contracts import JobFacts
from classifiers.extraction.events.read_events import ReadEvent, of_one_kind
from classifiers.extraction.scan import ScannedLine
from classifiers.signatures import Signature


def read(*hits: Signature) -> ReadEvent:
    return ReadEvent("a text", "a text", ScannedLine(0, 1, "a text", hits))


def test_whether_entries_of_an_event_depend_on_its_case() -> None:
    for entry in signatures.packaged().entries:
        if read(entry).is_conditional:
            continue
        assert not any((entry.needs, entry.unless)), entry.id
        assert entry.when is None or entry.when.holds(JobFacts(status="completed"), "node"), entry.id


def test_entries_that_match_an_event_for_sure_are_those_of_one_kind() -> None:
    entries = signatures.packaged().entries
    change = next(one for one in entries if one.id.startswith("changes.") and not read(one).is_conditional)
    trouble = next(one for one in entries if one.id.startswith("nvidia.xid-") and not read(one).is_conditional)
    event = read(change, trouble)
    assert event.entries.hits == of_one_kind(event.hits, is_change=False) == (trouble,)
    assert of_one_kind(event.hits, is_change=True) == (change,)
    assert event.entries.ids == (trouble.id,)
    assert event.entries is event.entries


def test_what_a_text_says_of_clocks_and_waits_is_kept() -> None:
    ahead = ReadEvent("BMC clock is behind by 2 h", "BMC clock is behind by 2 h", None)
    assert (ahead.ahead_s, ahead.blocked_s, ahead.hits) == (-7_200.0, 0.0, ())
    blocked = ReadEvent("task python:7 blocked for more than 120 s", "", None)
    assert (blocked.ahead_s, blocked.blocked_s) == (None, 120.0)
