"""Figures with intervals: parts of the cases, macro averages, calibration by side, first lines."""

import math
from dataclasses import replace
from typing import Any

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import figures, text_tables
from classifiers.evaluation.baselines import buggy_code, majority
from classifiers.evaluation.case_files import from_measured
from classifiers.evaluation.metrics import Answer
from tests.classifiers.conftest import labelled

SIDES = {"U": "user", "H": "hardware", "S": "system"}


def case(number: int, cause: str = "USER.1", **changes: Any) -> LabelledCase:
    flat = {"id": f"c{number}", "group": f"g{number}", "log": "x", "side": SIDES[cause[0]], "cause": cause, **changes}
    return from_measured(flat, "x")


def answer(cause: str, confidence: float = 0.9, **changes: Any) -> Answer:
    labels = {"side": SIDES[cause[0]], "cause": cause, "category": "none", "symptom": "none", "retry": "futile"}
    return replace(Answer(labels=labels, confidence=confidence), **changes)


def test_macro_averages_show_what_a_constant_hides() -> None:
    cases = [*(case(number) for number in range(9)), case(9, "HW.GPU.2")]
    [own, constant, frequent] = figures.measure_parts(
        cases,
        [("own", [answer("USER.1")] * 9 + [answer("HW.GPU.2")]), ("b", buggy_code(cases)), ("m", majority(cases))],
    )["all"]
    assert constant.figures["side.right"].value == frequent.figures["side.right"].value == pytest.approx(0.9)
    assert constant.figures["side.macro_recall"].value == 0.5
    assert own.figures["side.macro_recall"].value == own.figures["cause.macro_f1"].value == 1.0
    assert [(one.code, one.cases, one.recall.value) for one in constant.causes] == [
        ("HW.GPU.2", 1, 0),
        ("USER.1", 9, 1),
    ]


def test_cases_of_one_source_count_as_one_in_the_interval() -> None:
    right, wrong = answer("USER.1"), answer("SYS.1")
    many = [case(number) for number in range(40)]
    few = [replace(one, group=f"g{number % 2}") for number, one in enumerate(many)]
    answers = [right, wrong] * 20
    wide = figures.measure_part("all", "x", few, answers).figures["side.right"]
    narrow = figures.measure_part("all", "x", many, answers).figures["side.right"]
    assert wide.value == narrow.value == 0.5
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert 0.3 < narrow.low < 0.5 < narrow.high < 0.7
    assert figures.measure_part("all", "x", many, answers).figures["side.right"] == narrow
    alone = figures.measure_part("all", "x", [case(0)], [right]).figures["side.right"]
    assert alone.value == 1.0
    assert math.isnan(alone.low)


def test_logs_and_reports_captured_and_composed_cases_are_parts() -> None:
    log, report = case(0, medium="log"), case(1, medium="report")
    composed = replace(log, id="c2", provenance={"origin": "composed", "medium": "log"})
    parts = figures.parts_of([log, report, composed])
    assert parts == {
        "all": [0, 1, 2],
        "medium: log": [0, 2],
        "origin: measured": [0, 1],
        "medium: report": [1],
        "origin: composed": [2],
    }
    assert figures.parts_of([log]) == {"all": [0]}


def test_calibration_is_given_for_each_predicted_side() -> None:
    cases = [case(0), case(1), case(2), case(3)]
    answers = [answer("USER.1", 0.75), answer("USER.1", 0.75), answer("HW.GPU.2", 0.95), answer("USER.1", 0.75)]
    found = figures.measure_part("all", "x", cases, answers).figures
    assert (found["hardware.right"].value, found["hardware.right"].cases) == (0.0, 1)
    assert found["hardware.ece"].value == pytest.approx(0.95)
    assert found["user.ece"].value == pytest.approx(0.25)
    assert found["ece"].value == pytest.approx((3 * 0.25 + 0.95) / 4)
    assert "system.ece" not in found


def test_coverage_and_what_is_right_when_answered() -> None:
    cases = [case(0), case(1), case(2), case(3)]
    answers = [answer("USER.1"), answer("USER.1"), answer("SYS.1", abstained=True), answer("SYS.1")]
    found = figures.measure_part("all", "x", cases, answers).figures
    assert found["answered"].value == 0.75
    assert found["right_when_answered"].value == pytest.approx(2 / 3)


def test_the_first_initiating_line_is_counted_apart_from_the_others() -> None:
    root = "KeyError: 'learning_rate'"
    cases = [case(number, root_line=root) for number in range(2)]
    answers = [answer("USER.1", initiating=(root,)), answer("USER.1", initiating=("first", "second", root))]
    found = figures.measure_part("all", "x", cases, answers).figures
    assert found["first_line"].value == 0.5
    assert found["any_line"].value == 1.0
    assert found["initiating_lines"].value == 2.0


def test_only_cases_with_one_defensible_side_are_decidable_unless_stated() -> None:
    two = case(0, side_ok=["user", "system"])
    assert not figures.is_decidable(two)
    assert figures.is_decidable(case(1))
    assert figures.is_decidable(replace(two, provenance={"origin": "measured", "decidable": True}))
    answers = [answer("HW.GPU.2"), answer("USER.1")]
    found = figures.measure_part("all", "x", [two, case(1)], answers).figures
    assert (found["side.right"].value, found["side.decidable"].value) == (0.5, 1.0)


def test_text_and_json_give_the_constant_and_the_intervals() -> None:
    cases = [labelled("key", number) for number in range(3)] + [labelled("ecc", 3)]
    parts = figures.measure_parts(
        cases, [("own", [answer("USER.1")] * 3 + [answer("HW.GPU.1")]), ("always buggy code", buggy_code(cases))]
    )
    shown = text_tables.text(parts)
    assert "is right on the side in 0.750 of these cases; own is right in 1.000" in shown
    assert "1.000 [1.000, 1.000]" in shown
    assert "true cause" in shown
    no_causes = {"all": [replace(one, causes=()) for one in parts["all"]]}
    assert "true cause" not in text_tables.text(no_causes)
    [everything] = text_tables.json_figures(parts)
    own, constant = everything["predictors"]
    assert own["causes"]["HW.GPU.1"]["recall"]["value"] == 1.0
    assert constant["figures"]["side.right"]["value"] == 0.75
