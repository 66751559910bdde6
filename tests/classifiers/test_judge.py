import numpy as np
import pytest

from classifiers.case import Case, JobFacts
from classifiers.items import Extracted
from classifiers.judge import Judge
from classifiers.text import Floats, Head, TextModel

SIDES = ("hardware", "system", "user")
CAUSES = ("HW.NODE.1", "SYS.1", "SYS.5", "USER.1")
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
    for axis, classes in (("side", SIDES), ("cause", CAUSES), ("retry", OUTLOOKS)):
        heads.append(Head(axis, classes, begin))
        begin += len(classes)
    nothing = np.zeros((0, begin), dtype=np.float32)
    return Judge(TextModel((), tuple(heads), nothing, np.zeros(begin, dtype=np.float32)), GIVEN)


@pytest.fixture(scope="module")
def silent() -> Case:
    return Case(JobFacts("failed"), ())


def shares(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def outlook(judge: Judge, silent: Case, cause: Floats, retry: Floats) -> str:
    """What is said of a case that no entry speaks of, from the words alone."""
    sides = shares(cause[0], cause[1] + cause[2], cause[3])
    return judge.judge(Extracted(silent, [], [], 0, 0), {"side": sides, "cause": cause, "retry": retry}, 1.0).retry


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
