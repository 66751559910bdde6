"""Votes on the label of a group: one a person, and as much as others agree with them."""

from classifiers.model.artifact import Model
from classifiers.model.site.layer import SiteLayer
from tests.classifiers.model.test_site import LICENCE, case, fitted

USER = {"side": "user", "cause": "USER.4"}
SIDE_ALONE = {"side": "user"}
WRONG = {"side": "hardware", "cause": "HW.GPU.1"}


def line(pool: int) -> str:
    words = ("red", "blue", "green", "grey", "pink", "white")
    return f"{words[pool]} pool: {LICENCE.format(n=1)} of {words[pool]}"


def remembered(layer: SiteLayer) -> dict[str, tuple[str, int]]:
    """By a case of each remembered group its cause and the people who gave it."""
    return {entry.cases[0]: (entry.labels.get("cause", ""), entry.people) for entry in layer.memory.entries}


def test_a_side_alone_contradicts_no_cause_of_this_side_and_is_no_second_word_for_it(model: Model) -> None:
    labels = [case("a1", line(0), SIDE_ALONE, who="ben"), case("a2", line(0), USER, who="ana")]
    made = fitted(model, *labels)
    assert (remembered(made.layer), made.conflicts) == ({"a1": ("USER.4", 1)}, ())
    other = case("a3", line(0), {"side": "user", "cause": "USER.1"}, who="cem")
    assert fitted(model, *labels, other).conflicts == ("a1", "a2", "a3"), "nor does it choose among causes"


def test_who_contradicts_everybody_does_not_cancel_what_others_say(model: Model) -> None:
    known = [
        case(f"{name}{pool}", line(pool), WRONG if who == "mallory" else USER, who=who)
        for pool in range(5)
        for name, who in (("a", "ana"), ("b", "ben"), ("m", "mallory"))
    ]
    last = [case("a5", line(5), USER, who="ana"), case("m5", line(5), WRONG, who="mallory")]
    assert fitted(model, *last).conflicts == ("a5", "m5"), "of two unknown people neither counts more"
    made = fitted(model, *known, *last)
    assert remembered(made.layer)["a5"] == ("USER.4", 1)
    assert {one[0] for one in made.conflicts} == {"m"}


def test_labels_of_one_person_say_nothing_of_how_often_people_agree(model: Model) -> None:
    alone = fitted(model, *(case(f"a{number}", line(0), USER) for number in range(40)))
    assert alone.layer.memory_confidence == 0.95
    divided = [case(f"{who[0]}{pool}", line(pool), USER if who == "ana" else WRONG, who=who)
               for pool in range(6) for who in ("ana", "mallory")]  # fmt: skip
    assert fitted(model, *divided).layer.memory_confidence < 0.85, "those that contradict each other count"
    both = [case(f"{who[0]}{pool}", line(pool), USER, who=who) for pool in range(6) for who in ("ana", "ben")]
    assert fitted(model, *both).layer.memory_confidence > 0.96
