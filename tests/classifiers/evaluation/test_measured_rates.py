import json

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import held_out, measured_rates
from classifiers.evaluation.metrics import Answer
from classifiers.model.artifact import Model
from tests.classifiers.conftest import few_signatures


def _answer(side: str, cause: str, confidence: float) -> Answer:
    return Answer(
        labels={"side": side, "cause": cause, "category": "none", "symptom": "none", "retry": "futile"},
        confidence=confidence,
        abstained=confidence < 0.5,
    )


def test_shares_count_each_kind_equally(cases: list[LabelledCase]) -> None:
    case = next(one for one in cases if one.labels.best["cause"] == "USER.1")
    other = next(one for one in cases if one.labels.best["cause"] == "USER.1" and one.kind != case.kind)
    answers = [
        (case, _answer("user", "USER.1", 0.95), 1.0),
        (other, _answer("user", "USER.1", 0.95), 0.5),
        (other, _answer("system", "SYS.1", 0.25), 0.5),
    ]
    table = measured_rates.tables(answers, [case, other], model="m 1", data="0", threshold=0.5)["causes"]["USER.1"]
    assert table["side"] == {"user": 0.75, "system": 0.25}
    assert table["abstained"] == 0.25
    assert table["right"] == 0.75
    assert (table["confidence"][9], table["confidence"][2]) == (0.75, 0.25)
    assert (table["right_by_confidence"][9], table["right_by_confidence"][2]) == (1.0, 0.0)
    assert table["outcomes"][0]["share"] == 0.75
    assert table["weak"]


def test_every_view_of_a_case_is_answered_and_the_shares_of_every_cause_sum_to_one(
    cases: list[LabelledCase], model: Model
) -> None:
    answers, viewed = held_out.held_out_answers(cases, few_signatures(), model)
    assert len(answers) == len(cases)
    assert len(viewed) > len(cases)
    table = measured_rates.tables(viewed, cases, model="m 1", data="0", threshold=0.5)
    assert json.loads(json.dumps(table)) == table
    for one in table["causes"].values():
        for axis in ("side", "cause", "retry", "confidence"):
            shares = one[axis].values() if isinstance(one[axis], dict) else one[axis]
            assert sum(shares) == pytest.approx(1.0, abs=0.01)
