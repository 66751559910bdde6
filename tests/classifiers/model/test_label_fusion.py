import numpy as np
import pytest

from classifiers.contracts import Case, JobFacts
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.model.label_fusion import SIGNALS, Judge, Judgement
from classifiers.model.linear_model import Floats, Head, TextModel

SIDES = ("hardware", "system", "user")
CAUSES = ("HW.NODE.1", "SYS.1", "SYS.5", "USER.1")
CATEGORIES = ("EE.1", "GC.3", "none")
OUTLOOKS = ("after_repair", "futile", "helps", "helps_elsewhere")
GIVEN = {
    "HW.NODE.1": {"helps_elsewhere": 0.9, "after_repair": 0.1},
    "SYS.1": {"after_repair": 0.6, "helps": 0.2, "helps_elsewhere": 0.2},
    "SYS.5": {"helps": 0.85, "after_repair": 0.15},
    "USER.1": {"futile": 1.0},
}


@pytest.fixture(scope="module")
def judge() -> Judge:
    heads, begin = [], 0
    for axis, classes in (("side", SIDES), ("cause", CAUSES), ("category", CATEGORIES), ("retry", OUTLOOKS)):
        heads.append(Head(axis, classes, begin))
        begin += len(classes)
    nothing = np.zeros((0, begin), dtype=np.float32)
    return Judge(TextModel((), tuple(heads), nothing, np.zeros(begin, dtype=np.float32)), GIVEN)


@pytest.fixture(scope="module")
def silent() -> Case:
    return Case(JobFacts("failed"), ())


def shares(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def judged(judge: Judge, silent: Case, cause: Floats, retry: Floats, category: Floats) -> Judgement:
    """What is said of a case that no entry speaks of, from the words alone."""
    sides = shares(cause[0], cause[1] + cause[2], cause[3])
    text = {"side": sides, "cause": cause, "category": category, "retry": retry}
    return judge.judge(ExtractedCase(silent, [], [], 0, 0), text, 1.0)


def outlook(judge: Judge, silent: Case, cause: Floats, retry: Floats) -> str:
    return judged(judge, silent, cause, retry, shares(0.1, 0.1, 0.8)).retry


def category(judge: Judge, silent: Case, cause: Floats, said: Floats) -> str:
    return judged(judge, silent, cause, shares(0.25, 0.25, 0.25, 0.25), said).category


def test_what_passes_is_tried_again(judge: Judge, silent: Case) -> None:
    assert outlook(judge, silent, shares(0.02, 0.05, 0.92, 0.01), shares(0.1, 0.02, 0.86, 0.02)) == "helps"
    assert outlook(judge, silent, shares(0.96, 0.02, 0.01, 0.01), shares(0.1, 0.02, 0.03, 0.85)) == "helps_elsewhere"


def test_words_of_a_standing_fault_hold_a_job_back_though_its_cause_mostly_passes(judge: Judge, silent: Case) -> None:
    outage = shares(0.01, 0.05, 0.93, 0.01)
    assert outlook(judge, silent, outage, shares(0.3, 0.02, 0.66, 0.02)) == "helps"
    assert outlook(judge, silent, outage, shares(0.55, 0.02, 0.41, 0.02)) == "after_repair"


def test_nothing_helps_before_somebody_has_looked_where_the_program_may_be_at_fault(judge: Judge, silent: Case) -> None:
    assert outlook(judge, silent, shares(0.5, 0.1, 0.0, 0.4), shares(0.05, 0.4, 0.05, 0.5)) == "after_repair"


def test_a_program_s_own_failure_is_not_tried_again(judge: Judge, silent: Case) -> None:
    assert outlook(judge, silent, shares(0.02, 0.02, 0.01, 0.95), shares(0.1, 0.7, 0.1, 0.1)) == "futile"


def test_a_path_that_the_platform_lacks_is_no_program_s_failure(judge: Judge, silent: Case) -> None:
    platform, program = shares(0.05, 0.5, 0.05, 0.4), shares(0.02, 0.04, 0.04, 0.9)
    assert category(judge, silent, platform, shares(0.9, 0.05, 0.05)) == "none"
    assert category(judge, silent, program, shares(0.9, 0.05, 0.05)) == "EE.1"
    assert category(judge, silent, platform, shares(0.03, 0.94, 0.03)) == "GC.3"


def owner(judge: Judge, silent: Case, cause: Floats) -> float:
    told = judged(judge, silent, cause, shares(0.1, 0.1, 0.4, 0.4), shares(0.1, 0.1, 0.8))
    return told.signals[SIGNALS.index("owner")]


def test_that_the_platform_has_to_act_may_be_clear_where_its_side_is_not(judge: Judge, silent: Case) -> None:
    either_of_the_platform = owner(judge, silent, shares(0.49, 0.49, 0.0, 0.02))
    perhaps_the_user = owner(judge, silent, shares(0.02, 0.49, 0.0, 0.49))
    assert either_of_the_platform > 2 > perhaps_the_user
