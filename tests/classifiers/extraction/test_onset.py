"""The order of onsets holds in the scheduler's message and after trouble that a run survived."""

import pytest

from classifiers.extraction.onset import AFTER_SURVIVAL, IN_SCHEDULER_MESSAGE, Onset

OF_LOG_LINES = [
    Onset.DECISIVE_ENTRY,
    Onset.STRONG_ENTRY,
    Onset.TRACEBACK,
    Onset.WEAK_ENTRY_EXCEPTION,
    Onset.NAMED_EXCEPTION,
    Onset.SHELL_ERROR,
    Onset.CHAINED_TRACEBACK,
    Onset.WEAK_ENTRY,
    Onset.PROCESS_END,
    Onset.LIKELY_CONSEQUENCE,
    Onset.RETRIED,
    Onset.ERROR_WORDS,
]


@pytest.mark.parametrize("onset", [*OF_LOG_LINES, Onset.NEUTRAL])
def test_the_scheduler_message_counts_less_than_the_same_words_in_a_log(onset: Onset) -> None:
    assert IN_SCHEDULER_MESSAGE[onset] > onset


@pytest.mark.parametrize("onset", OF_LOG_LINES)
def test_survived_faults_come_after_all_faults_that_were_not_survived(onset: Onset) -> None:
    assert AFTER_SURVIVAL[onset] > Onset.ERROR_WORDS
    assert AFTER_SURVIVAL[onset] < Onset.NEUTRAL


def test_time_decides_between_errors_of_the_same_certainty() -> None:
    assert Onset.TRACEBACK.precedence == Onset.SHELL_ERROR.precedence == Onset.SCHEDULER_STRONG_ENTRY.precedence
    assert Onset.DECISIVE_ENTRY.precedence < Onset.STRONG_ENTRY.precedence
    assert Onset.WEAK_ENTRY.precedence > Onset.SCHEDULER_STRONG_ENTRY.precedence
    assert Onset.WEAK_ENTRY.precedence == Onset.LOGGED_ERROR.precedence
    assert Onset.LIKELY_CONSEQUENCE.precedence == Onset.FIRST_CONSEQUENCE.precedence
