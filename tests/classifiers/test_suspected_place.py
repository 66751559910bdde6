"""Verdicts of the user's side and undecided ones suspect no node or GPU."""

import pytest

from classifiers import owner_summary
from classifiers.contracts import Case, JobFacts, Suspect
from classifiers.suspected_place import suspected_node, suspected_place

PLACE = Suspect(rank=3, node="gpu018", gpu=1)


@pytest.mark.parametrize(
    ("side", "abstained", "place"),
    [
        ("hardware", False, PLACE),
        ("system", False, PLACE),
        ("hardware", True, Suspect(rank=3)),
        ("user", False, Suspect(rank=3)),
    ],
)
def test_a_node_is_suspected_only_by_a_decided_verdict_against_the_platform(
    side: str, abstained: bool, place: Suspect
) -> None:
    assert suspected_place(PLACE, side, abstained=abstained) == place
    assert suspected_node("gpu018", side, abstained=abstained) == place.node
    assert suspected_place(None, side, abstained=abstained) == Suspect()


def test_the_explanation_for_the_owner_follows_the_rule() -> None:
    case = Case(JobFacts(status="failed"), (), suspect=PLACE)
    assert "(rank 3, GPU 1, node gpu018)" in owner_summary.explanation(case, "HW.GPU.1", None, abstained=False)
    for cause, abstained in (("USER.1", False), ("HW.GPU.1", True)):
        text = owner_summary.explanation(case, cause, None, abstained=abstained)
        assert "(rank 3)" in text
        assert "gpu018" not in text


def test_an_undecided_explanation_can_begin_with_its_doubt() -> None:
    case = Case(JobFacts(status="failed"), (), suspect=PLACE)
    undecided = owner_summary.explanation(case, "HW.NET.1", None, abstained=True)
    assert undecided.endswith("this is the best guess.")
    guess = owner_summary.best_guess(undecided)
    assert guess.startswith("Best guess: An InfiniBand")
    assert "does not settle" not in guess
    assert owner_summary.best_guess("A file is missing.") == "A file is missing."
