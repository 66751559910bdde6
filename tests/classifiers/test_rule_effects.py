"""Switching off rules of reading and relevance."""

from classifiers.case_builder import build_case
from classifiers.contracts import RawCase
from classifiers.diagnoser import Diagnoser
from classifiers.extraction import benign_lines
from tests.classifiers.rule_effects import Switchboard, few_cases

_LOG = "loading shards\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr'\n"


def _case() -> RawCase:
    return build_case({"cluster": "c", "job_id": "1", "status": "failed", "logs": [{"rank": 0, "tail": _LOG}]})


def test_a_rule_that_is_switched_off_says_no_and_all_are_as_before_afterwards() -> None:
    original, line = benign_lines.is_benign, "WARNING: apex is not installed, falling back"
    assert original(line)
    board = Switchboard()
    rules = [rule for rule in board.rules if rule.name == "classifiers.extraction.benign_lines.is_benign"]
    with board.wrapped():
        assert benign_lines.is_benign(line)
        assert board.said_yes == {rules[0].name}
        with board.without(rules):
            assert not benign_lines.is_benign(line)
        assert benign_lines.is_benign(line)
    assert benign_lines.is_benign is original


def test_rules_that_say_yes_are_recorded_and_without_them_a_case_is_still_judged(diagnoser: Diagnoser) -> None:
    board = Switchboard()
    with board.wrapped():
        before = diagnoser.diagnose([_case()])[0]
        yes = [frozenset(board.said_yes)]
        assert yes[0]
        never = few_cases(board, yes, 0)
        assert {rule.name for rule in never}.isdisjoint(yes[0])
        with board.without(never):
            assert diagnoser.diagnose([_case()])[0] == before
