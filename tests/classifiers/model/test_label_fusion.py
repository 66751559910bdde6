"""Labels that follow from the text model's probabilities and from votes of the catalogue."""

import numpy as np
import pytest

from classifiers import signatures
from classifiers.model.calibration import CONFIDENCE_FEATURES
from classifiers.model.conditional_logit import ConditionalLogit
from classifiers.model.fusion_fitting import retry_logit
from classifiers.model.fusion_input import GROUPS, FusionInput, Vote
from classifiers.model.label_fusion import FusedLabels, LabelFusion
from classifiers.model.linear_model import Floats

SIDES = ("hardware", "system", "user")
CAUSES = ("HW.NODE.1", "SYS.1", "SYS.5", "USER.1")
CATEGORIES = ("EE.1", "GC.3", "none")
SYMPTOMS = ("D.1.2", "D.1.3", "none")
OUTLOOKS = ("after_repair", "futile", "helps", "helps_elsewhere")
RETRY_BY_CAUSE = {
    "HW.NODE.1": {"helps_elsewhere": 0.9, "after_repair": 0.1},
    "SYS.1": {"after_repair": 0.6, "helps": 0.2, "helps_elsewhere": 0.2},
    "SYS.5": {"helps": 0.85, "after_repair": 0.15},
    "USER.1": {"futile": 1.0},
}
VOTES = (0.5,) * len(GROUPS)
CATALOGUE = signatures.packaged()
NODE_FAILURE = next(
    entry
    for entry in CATALOGUE.entries
    if entry.strength == "decisive" and entry.causes.get("HW.NODE.1", 0) == 1 and entry.role == "initiating"
)


@pytest.fixture(scope="module")
def fusion() -> LabelFusion:
    classes = {"side": SIDES, "cause": CAUSES, "category": CATEGORIES, "symptom": SYMPTOMS, "retry": OUTLOOKS}
    coefficients = {
        "cause": ConditionalLogit((1.0, 0.3, *VOTES)),
        "side": ConditionalLogit((0.6, 0.4)),
        "category": ConditionalLogit((0.8, 0.8, *VOTES)),
        "symptom": ConditionalLogit((1.0, *VOTES)),
        "retry": retry_logit(),
    }
    return LabelFusion(classes, coefficients, RETRY_BY_CAUSE, CATALOGUE)


def shares(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def labels(
    fusion: LabelFusion,
    cause: Floats,
    *,
    retry: Floats | None = None,
    category: Floats | None = None,
    symptom: Floats | None = None,
    votes: tuple[Vote, ...] = (),
    deciding: str | None = None,
    single_process: bool = False,
    lines: int = 1,
    of_event: bool = False,
) -> FusedLabels:
    """The labels of a case of which the text model gives these probabilities."""
    text = {
        "side": shares(cause[0], cause[1] + cause[2], cause[3]),
        "cause": cause,
        "category": shares(0.1, 0.1, 0.8) if category is None else category,
        "symptom": shares(0.1, 0.1, 0.8) if symptom is None else symptom,
        "retry": shares(0.25, 0.25, 0.25, 0.25) if retry is None else retry,
    }
    one = FusionInput(
        votes,
        deciding,
        has_onset=True,
        begins_with_event=of_event,
        distributed=True,
        single_process=single_process,
        lines=lines,
    )
    rows = {axis: values[np.newaxis, :] for axis, values in text.items()}
    return fusion.labels([one], rows, [1.0])[0]


def outlook(fusion: LabelFusion, cause: Floats, retry: Floats) -> str:
    return labels(fusion, cause, retry=retry).retry


def test_a_passing_failure_is_retried(fusion: LabelFusion) -> None:
    assert outlook(fusion, shares(0.02, 0.05, 0.92, 0.01), shares(0.1, 0.02, 0.86, 0.02)) == "helps"
    assert outlook(fusion, shares(0.96, 0.02, 0.01, 0.01), shares(0.1, 0.02, 0.03, 0.85)) == "helps_elsewhere"


def test_words_of_a_lasting_fault_hold_a_job_back_though_its_cause_mostly_passes(fusion: LabelFusion) -> None:
    outage = shares(0.01, 0.05, 0.93, 0.01)
    assert outlook(fusion, outage, shares(0.3, 0.02, 0.66, 0.02)) == "helps"
    assert outlook(fusion, outage, shares(0.55, 0.02, 0.41, 0.02)) == "after_repair"


def test_words_of_other_lines_do_not_hold_back_what_the_first_line_says_a_retry_helps(fusion: LabelFusion) -> None:
    node, words = shares(0.9, 0.05, 0.04, 0.01), shares(0.02, 0.6, 0.03, 0.35)
    assert NODE_FAILURE.retry == "helps_elsewhere"
    assert labels(fusion, node, retry=words, lines=400).retry == "after_repair"
    assert labels(fusion, node, retry=words, deciding=NODE_FAILURE.id, lines=400).retry == "helps_elsewhere"


def test_in_a_short_log_all_words_count_whatever_the_first_line_says_of_a_retry(fusion: LabelFusion) -> None:
    node, words = shares(0.9, 0.05, 0.04, 0.01), shares(0.02, 0.6, 0.03, 0.35)
    assert labels(fusion, node, retry=words, deciding=NODE_FAILURE.id, lines=3).retry == "after_repair"


def test_a_job_is_held_back_where_the_program_may_be_at_fault(fusion: LabelFusion) -> None:
    assert outlook(fusion, shares(0.5, 0.1, 0.0, 0.4), shares(0.05, 0.4, 0.05, 0.5)) == "after_repair"


def test_a_failure_of_the_program_itself_is_not_retried(fusion: LabelFusion) -> None:
    assert outlook(fusion, shares(0.02, 0.02, 0.01, 0.95), shares(0.1, 0.7, 0.1, 0.1)) == "futile"


def test_a_path_that_the_platform_lacks_is_no_category_of_the_program(fusion: LabelFusion) -> None:
    platform, program = shares(0.05, 0.5, 0.05, 0.4), shares(0.02, 0.04, 0.04, 0.9)
    assert labels(fusion, platform, category=shares(0.9, 0.05, 0.05)).category == "none"
    assert labels(fusion, program, category=shares(0.9, 0.05, 0.05)).category == "EE.1"


def test_the_best_category_has_the_probability_that_any_applies(fusion: LabelFusion) -> None:
    [(category, probability)] = fusion.best_categories(shares(0.02, 0.78, 0.2)[np.newaxis], ["user"])
    assert category == "GC.3"
    assert probability == pytest.approx(0.8)
    assert fusion.best_categories(shares(0.9, 0.05, 0.05)[np.newaxis], ["system"]) == [("none", 0.0)]


def test_a_category_needs_a_cause_of_the_program(fusion: LabelFusion) -> None:
    text = shares(0.02, 0.68, 0.3)
    assert labels(fusion, shares(0.02, 0.04, 0.04, 0.9), category=text).category == "GC.3"
    assert labels(fusion, shares(0.9, 0.04, 0.04, 0.02), category=text).category == "none"


def test_a_decisive_entry_on_the_first_line_changes_a_doubtful_cause(fusion: LabelFusion) -> None:
    doubtful = shares(0.2, 0.2, 0.15, 0.45)
    assert labels(fusion, doubtful).causes[0][0] == "USER.1"
    decided = labels(fusion, doubtful, votes=(Vote(NODE_FAILURE.id, GROUPS.index("decisive, first")),))
    assert (decided.side, decided.causes[0][0]) == ("hardware", "HW.NODE.1")


def test_the_first_cause_is_of_the_chosen_side(fusion: LabelFusion) -> None:
    found = labels(fusion, shares(0.0, 0.31, 0.31, 0.38))
    assert found.side == "system"
    assert found.causes[0][0] in {"SYS.1", "SYS.5"}
    assert len(found.causes) == 3


def test_one_process_has_no_symptom_first_and_several_have_the_likeliest(fusion: LabelFusion) -> None:
    cause, symptom = shares(0.02, 0.02, 0.01, 0.95), shares(0.3, 0.25, 0.45)
    assert labels(fusion, cause, symptom=symptom, single_process=True).symptoms[0][0] == "none"
    assert labels(fusion, cause, symptom=symptom).symptoms[0][0] == "D.1.2"
    assert labels(fusion, cause, symptom=shares(0.1, 0.1, 0.8)).symptoms[0][0] == "none"


def test_symptoms_stand_with_the_likeliest_first(fusion: LabelFusion) -> None:
    cause = shares(0.02, 0.02, 0.01, 0.95)
    found = labels(fusion, cause, symptom=shares(0.5, 0.4, 0.1)).symptoms
    assert [code for code, _ in found] == ["D.1.2", SYMPTOMS[1], "none"]


def owner(fusion: LabelFusion, cause: Floats) -> float:
    return labels(fusion, cause).confidence_features[CONFIDENCE_FEATURES.index("owner_log_odds")]


def test_it_may_be_clear_that_the_platform_has_to_act_though_its_side_is_not(fusion: LabelFusion) -> None:
    either_of_the_platform = owner(fusion, shares(0.49, 0.49, 0.0, 0.02))
    perhaps_the_user = owner(fusion, shares(0.02, 0.49, 0.0, 0.49))
    assert either_of_the_platform > 2 > perhaps_the_user


@pytest.mark.parametrize(
    ("user", "side"),
    [
        (0.60, "hardware"),
        (0.70, "hardware"),
        (0.9999, "user"),  # the words are far more likely on the other side
    ],
)
def test_a_decisive_entry_decides_the_side_unless_the_words_are_all_but_certain(
    fusion: LabelFusion, user: float, side: str
) -> None:
    rest = (1 - user) / 3
    words = shares(rest, rest, rest, user)
    assert labels(fusion, words).side == "user"
    assert labels(fusion, words, deciding=NODE_FAILURE.id).side == side


def test_an_event_that_began_the_failure_decides_the_side_against_more_words(fusion: LabelFusion) -> None:
    words = shares(0.04, 0.05, 0.06, 0.85)
    assert labels(fusion, words, deciding=NODE_FAILURE.id).side == "user"
    assert labels(fusion, words, deciding=NODE_FAILURE.id, of_event=True).side == "hardware"


def test_a_strong_entry_decides_the_side_where_an_event_began_the_failure(fusion: LabelFusion) -> None:
    entry = next(
        one
        for one in CATALOGUE.entries
        if one.strength == "strong" and one.causes.get("HW.NODE.1", 0) == 1 and one.role == "initiating"
    )
    votes = (Vote(entry.id, GROUPS.index("strong, first")),)
    words = shares(0.07, 0.07, 0.06, 0.8)
    assert labels(fusion, words, votes=votes).side == "user"
    assert labels(fusion, words, votes=votes, of_event=True).side == "hardware"


def test_entries_that_speak_for_another_side_contradict(fusion: LabelFusion) -> None:
    words = shares(0.001, 0.001, 0.001, 0.997)
    assert not labels(fusion, words).contradicted
    of_node = labels(fusion, words, votes=(Vote(NODE_FAILURE.id, GROUPS.index("weak, following")),))
    assert (of_node.side, of_node.contradicted) == ("user", True)
    node = shares(0.997, 0.001, 0.001, 0.001)
    agreed = labels(fusion, node, votes=(Vote(NODE_FAILURE.id, GROUPS.index("weak, following")),))
    assert (agreed.side, agreed.contradicted) == ("hardware", False)


def test_a_decisive_entry_that_leaves_the_side_open_decides_nothing(fusion: LabelFusion) -> None:
    open_entry = next(
        entry
        for entry in CATALOGUE.entries
        if entry.strength == "decisive" and 0.4 <= entry.causes.get("USER.1", 0) <= 0.6 and len(entry.causes) > 1
    )
    words = shares(0.2, 0.1, 0.1, 0.6)
    assert labels(fusion, words, deciding=open_entry.id).side == labels(fusion, words).side
