import numpy as np
import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.model import constants, training
from classifiers.model.artifact import Model
from classifiers.model.calibration import CONFIDENCE_FEATURES, Calibration, fit_calibration, with_agreement
from classifiers.model.fitting import rounded, with_site_prior
from classifiers.model.line_weights import EQUAL
from classifiers.model.samples import fold_of, samples
from classifiers.signatures import packaged
from tests.classifiers.conftest import few_signatures, labelled


def test_the_same_seed_and_data_in_any_order_give_the_same_model(cases: list[LabelledCase]) -> None:
    model, _ = training.train(cases, few_signatures())
    again, _ = training.train(cases[::-1], few_signatures())
    assert again.lines == model.lines
    assert again.text.names == model.text.names
    assert np.allclose(again.text.weights, model.text.weights)
    assert again.fusion == model.fusion
    assert again.calibration == model.calibration
    assert again.about["data"] == model.about["data"]


def test_the_report_names_classes_with_few_cases(cases: list[LabelledCase]) -> None:
    _, report = training.train(cases, few_signatures())
    assert report.weak["cause"]["HW.NODE.2"] == 0
    assert "HW.GPU.1" not in report.weak["cause"]
    assert set(report.held_out) == {"side", "cause", "category", "symptom", "retry", "answered"}
    assert set(report.seconds) == {"reading", "fitting", "first lines"}


def test_an_operator_s_cases_set_the_prior_of_the_site(cases: list[LabelledCase], model: Model) -> None:
    own = [labelled("mount", number, origin="operator") for number in range(200, 260)]
    moved, _ = training.train([*cases, *own], few_signatures())
    head = model.text.head("cause")
    places = {code: head.begin + place for place, code in enumerate(head.classes)}
    same = with_site_prior(model.text, cases)
    assert same is model.text
    shifted = with_site_prior(model.text, [*cases, *own])
    change = shifted.intercept - model.text.intercept
    assert change[places["SYS.1"]] > 0 > change[places["USER.1"]]
    [verdict] = Diagnoser(moved, few_signatures()).diagnose([labelled("mount", 999).raw])
    assert verdict.cause == "SYS.1"


def test_a_kind_s_cases_share_a_fold(cases: list[LabelledCase]) -> None:
    folds: dict[str, set[int]] = {}
    for sample in samples(cases, packaged(), EQUAL, 0):
        folds.setdefault(sample.case.kind, set()).add(sample.fold)
    assert all(len(found) == 1 for found in folds.values())
    assert {fold_of(kind, 0) for kind in folds} == {0, 1, 2}


def test_p_of_retry_given_a_cause_sums_to_one(cases: list[LabelledCase]) -> None:
    shares = training.retry_shares(cases)
    assert all(sum(one.values()) == pytest.approx(1) for one in shares.values())
    assert shares["SYS.1"]["after_repair"] > 0.5


def test_confidence_rises_with_the_share_right_and_verdicts_abstain_below_the_threshold() -> None:
    rows = [(float(place), *(0.0,) * (len(CONFIDENCE_FEATURES) - 1)) for place in range(-20, 20)]
    right = [row[0] > -15 for row in rows]
    curve = fit_calibration(rows, right, [1.0] * len(rows))
    assert curve.confidence(rows[0]) < curve.confidence(rows[-1])
    assert 0 < curve.threshold < curve.confidence(rows[-1])


def test_confidence_is_lower_than_the_share_right_of_held_out_kinds_as_unknown_sources_are_right_less_often() -> None:
    rows = [(float(number % 2), *(0.0,) * (len(CONFIDENCE_FEATURES) - 1)) for number in range(2_000)]
    right = [number % 40 != 1 if number % 2 else number % 10 != 0 for number in range(2_000)]
    curve = fit_calibration(rows, right, [1.0] * len(rows))
    share_right = sum(right[1::2]) / 1_000
    assert 0.8 < curve.confidence(rows[1]) < share_right


def test_a_model_keeps_its_weights_in_half_precision_and_drops_features_without_any(model: Model) -> None:
    text = model.text
    again = rounded(text)
    assert np.array_equal(text.weights, text.weights.astype(np.float16).astype(np.float32))
    assert text.weights.any(axis=1).all()
    assert again.names == text.names


def test_candidates_that_speak_for_the_side_raise_the_confidence() -> None:
    against, half, for_it = (with_agreement(0.84, agreement, 0.0) for agreement in (0.0, 0.5, 1.0))
    assert against < half < for_it
    assert against < 0.6
    assert for_it > 0.85
    assert with_agreement(0.84, None, 2.0) == 0.84
    assert [with_agreement(sure, 0.3, 0.0) for sure in (0.0, 1.0)] == [0.0, 1.0]


def test_a_sure_cause_raises_the_confidence_unless_node_events_tell() -> None:
    rows = [(float(place), *(0.0,) * (len(CONFIDENCE_FEATURES) - 1)) for place in range(-20, 20)]
    curve = fit_calibration(rows, [row[0] > -15 for row in rows], [1.0] * len(rows))
    unsure, sure = (curve.confidence((*rows[30][:-1], odds)) for odds in (-2.0, 2.0))
    assert unsure < curve.confidence(rows[30]) < sure
    assert with_agreement(unsure, 0.5, -2.0) == pytest.approx(with_agreement(sure, 0.5, 2.0))


def test_a_verdict_with_node_events_abstains_below_a_threshold_of_its_own() -> None:
    strict, lenient = (Calibration((), 0.0, threshold) for threshold in (0.9, 0.6))
    assert strict.least_confidence(has_events=False) == 0.9
    assert strict.least_confidence(has_events=True) == constants.EVENTS_ANSWERED_FROM
    assert lenient.least_confidence(has_events=True) == lenient.least_confidence(has_events=False) == 0.6
