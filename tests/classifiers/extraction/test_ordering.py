"""Evidence items are ordered by role, onset and time; a beginning is chosen where no line shows one."""

from typing import Any

import pytest

from classifiers import signatures
from classifiers.extraction import ordering
from classifiers.extraction.demotion import survival
from classifiers.extraction.evidence_items import EvidenceItem, fold_repeats
from classifiers.extraction.onset import Onset
from classifiers.extraction.progress_lines import ProgressLines
from classifiers.extraction.sampled_lines import only_line
from classifiers.taxonomy import Role


def item(text: str, role: Role, onset: Onset = Onset.NEUTRAL, position: int = 0, **changes: Any) -> EvidenceItem:
    return EvidenceItem(text, role, onset, 0, position, changes.pop("offset", position * 100), position + 1, **changes)


def test_a_line_of_the_same_words_on_the_same_rank_is_kept_once() -> None:
    items = [item(f"error {number}", "cascade", position=number, rank=number % 2) for number in range(6)]
    assert [one.text for one in fold_repeats(items)] == ["error 0", "error 1"]


def test_the_earliest_consequence_is_promoted_where_no_line_is_a_beginning() -> None:
    late = item("late", "cascade", position=0, rank=0, time=60.0)
    early = item("early", "cascade", position=1, rank=1, time=3.0)
    ordering.promote_first_sign([late, early])
    assert (early.role, early.onset) == ("initiating", Onset.FIRST_CONSEQUENCE)
    assert late.role == "cascade"


def test_no_consequence_is_promoted_where_a_line_is_a_beginning() -> None:
    cascade = item("time-out", "cascade", position=1, rank=1)
    ordering.promote_first_sign([item("KeyError: 'x'", "initiating", Onset.TRACEBACK), cascade])
    assert cascade.role == "cascade"


def test_a_retried_attempt_is_context_where_another_line_is_a_beginning_and_last_where_none_is() -> None:
    retried = item("upload failed, retrying", "initiating", Onset.RETRIED)
    survival.demote_survived([retried, item("KeyError: 'x'", "initiating", Onset.TRACEBACK, 1)], [None])
    assert (retried.role, retried.onset) == ("context", Onset.DEMOTED)
    alone = item("upload failed, retrying", "initiating", Onset.RETRIED)
    survival.demote_survived([alone], [None])
    assert (alone.role, alone.onset) == ("initiating", Onset.SURVIVED_RETRY)


def test_what_processes_waited_for_leads_where_they_only_say_that_they_waited() -> None:
    by_id = signatures.packaged().by_id
    lookup = item("W lookup failed, trying again", "initiating", Onset.RETRIED, hits=(by_id["python.name-resolution"],))
    waited = item("no rendezvous", "initiating", Onset.STRONG_ENTRY, 1, hits=(by_id["wordings.waited"],))
    survival.demote_survived([lookup, waited], [None])
    assert (lookup.role, lookup.onset) == ("initiating", Onset.STRONG_ENTRY)
    again = item("W lookup failed, trying again", "initiating", Onset.RETRIED, hits=(by_id["python.name-resolution"],))
    survival.demote_survived([again, item("KeyError: 'x'", "initiating", Onset.TRACEBACK, 1)], [None])
    assert again.role == "context"


def test_an_error_before_further_progress_is_demoted() -> None:
    steps = "".join(f"step {number} loss 1.0\n" for number in range(400))
    progress = ProgressLines(steps, lambda: ([steps.splitlines()[::10]], 1))
    survived = item("ERROR cannot reach the server", "initiating", Onset.ERROR_WORDS, offset=100)
    last = item("ERROR loss is not finite", "initiating", Onset.ERROR_WORDS, 1, offset=len(steps) - 10)
    survival.demote_survived([survived, last], [progress])
    assert (survived.role, last.role) == ("context", "initiating")


def test_items_are_sorted_by_role_then_onset_then_time() -> None:
    items = [
        item("teardown", "teardown", position=0),
        item("hint", "initiating", Onset.WEAK_ENTRY, 1, time=1.0),
        item("late", "initiating", Onset.STRONG_ENTRY, 2, time=9.0),
        item("early", "initiating", Onset.CHAINED_TRACEBACK, 3, time=2.0),
        item("decisive", "initiating", Onset.DECISIVE_ENTRY, 4, time=10.0),
    ]
    assert [one.text for one in sorted(items, key=ordering.sort_key)] == [
        "decisive", "early", "late", "hint", "teardown",
    ]  # fmt: skip


def test_the_suspect_rank_comes_first_among_equal_onsets() -> None:
    other = item("of rank 0", "initiating", Onset.TRACEBACK, 0, rank=0, time=1.0)
    suspect = item("of rank 3", "initiating", Onset.TRACEBACK, 1, rank=3, time=2.0)
    assert sorted([other, suspect], key=ordering.prefer_rank(3)) == [suspect, other]


def test_the_items_of_each_role_are_limited() -> None:
    items = [item(str(number), "cascade", position=number) for number in range(50)]
    assert len(ordering.limit(items)) == 8


def test_a_peer_without_an_answer_is_a_consequence_where_another_rank_died_of_its_program() -> None:
    by_id = signatures.packaged().by_id
    silent = item(
        "completion 12", "initiating", Onset.STRONG_ENTRY, 0, rank=0, hits=(by_id["network.ib-completion-12"],)
    )
    error = item(
        "KeyError: 'y'",
        "initiating",
        Onset.STRONG_ENTRY,
        1,
        rank=3,
        hits=(by_id["python.key-error"],),
        ends_process=True,
    )
    survival.demote_unanswered([silent, error])
    assert (silent.role, error.role) == ("cascade", "initiating")
    alone = item("completion 12", "initiating", Onset.STRONG_ENTRY, 0, rank=0, hits=silent.hits)
    survival.demote_unanswered([alone, item("lost", "cascade", position=1, rank=3)])
    assert alone.role == "initiating"


def test_the_first_of_repeated_attempts_leads() -> None:
    missing = (signatures.packaged().by_id["storage.s3-no-such"],)
    first = item(
        "no such key, attempt 1 of 8",
        "context",
        Onset.DEMOTED,
        0,
        hits=missing,
        error_words=frozenset({"no such"}),
    )
    last = item("no such key, gave up", "initiating", Onset.TRACEBACK, 1, hits=missing, start_offset=100)
    assert ordering.promote_first_mention([last, first])
    assert first.role == "initiating"


@pytest.mark.parametrize(
    ("attempt", "end", "leads"),
    [
        ("WARNING attempt 1/3 failed: {}", "giving up after 3 attempts", True),
        ("[WARN] read failed, retrying in 1s: {}", "RuntimeError: all retries exhausted", True),
        ("read failed (try 1 of 3): {}", "RuntimeError: maximum number of retries reached", True),
        ("read failed: {}", "giving up after 3 attempts", False),
        ("WARNING attempt 1/3 failed: {}", "RuntimeError: bad shape", False),
        ("WARNING attempt 1/3 failed", "giving up after 3 attempts", False),
    ],
)
def test_why_the_first_attempt_failed_leads_where_the_end_only_gives_up(attempt: str, end: str, leads: bool) -> None:
    hits = (signatures.packaged().by_id["python.io-error"],) if "{}" in attempt else ()
    first = item(
        attempt.format("OSError: [Errno 5] Input/output error"), "context", Onset.DEMOTED, 0, hits=hits,
        error_words=frozenset({"fail"}),
    )  # fmt: skip
    last = item(end, "initiating", Onset.TRACEBACK, 1, start_offset=100)
    assert ordering.promote_first_mention([last, first]) is leads


def test_attempts_that_the_run_survived_or_of_another_rank_do_not_lead() -> None:
    hits = (signatures.packaged().by_id["python.io-error"],)
    last = item("giving up after 3 attempts", "initiating", Onset.TRACEBACK, 1, start_offset=100, rank=1)
    for changes in ({"survived": True, "rank": 1}, {"rank": 2}):
        first = item(
            "attempt 1/3 failed: OSError: [Errno 5] Input/output error", "context", Onset.DEMOTED, 0, hits=hits,
            error_words=frozenset({"fail"}), **changes,
        )  # fmt: skip
        assert not ordering.promote_first_mention([last, first])


@pytest.mark.parametrize(
    ("lines", "begins"),
    [
        (["job 7 begins", "weights are of another shape"], "job 7 begins"),
        # A command names itself before its errors, whatever the language.
        (
            ["\u958b\u59cb", "cp: '/a.txt' \u3092 stat \u3067\u304d\u307e\u305b\u3093"],
            "cp: '/a.txt' \u3092 stat \u3067\u304d\u307e\u305b\u3093",
        ),
        (["run.sh: warning: setlocale: LC_ALL: cannot change locale (xx)", "out of cheese"], "out of cheese"),
        (["/a.py:5: FutureWarning: old", "  import pkg_resources"], None),
        (["n1:23:23 [0] NCCL INFO Init COMPLETE", "step 1 loss 2.0"], None),
    ],
)
def test_the_line_of_a_short_log_that_shows_the_failure_is_no_warning_or_progress(
    lines: list[str], begins: str | None
) -> None:
    items = [item(text, "context", position=number) for number, text in enumerate(lines)]
    found = only_line(items)
    assert (None if found is None else found.text) == begins
