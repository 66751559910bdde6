"""The threshold from which a category is reported: few failures without a category may get one."""

import numpy as np
import pytest

from classifiers.contracts import JobFacts, RawCase
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.model import constants
from classifiers.model.fusion_fitting import fit_category_threshold
from classifiers.model.fusion_input import FusionInput
from classifiers.model.samples import Sample

FUSION = FusionInput((), None, has_onset=True, begins_with_event=False, distributed=False, single_process=True, lines=1)
ENOUGH = constants.CATEGORY_PART_SAMPLES


def samples(count: int, category: str = "none", **provenance: str) -> list[Sample]:
    """So many samples of failures with a category."""
    best = {"side": "user", "cause": "USER.1", "category": category, "symptom": "none", "retry": "futile"}
    raw = RawCase(job=JobFacts(status="failed"), streams=())
    labels = Labels(best=best, allowed={axis: (label,) for axis, label in best.items()})
    return [
        Sample(LabelledCase(str(number), "group", "kind", raw, labels, dict(provenance)), raw, {}, FUSION, 1.0, 0)
        for number in range(count)
    ]


def false_reports(shares: np.ndarray, threshold: float) -> float:
    return float(np.mean(shares >= threshold))


def test_as_many_failures_without_a_category_get_one_as_allowed() -> None:
    shares = np.linspace(0.0, 0.85, 4 * ENOUGH)
    threshold = fit_category_threshold(samples(len(shares), origin="composed", medium="log"), shares)
    allowed = constants.CATEGORY_FALSE_REPORTS
    assert allowed - 0.01 <= false_reports(shares, threshold) <= allowed + 1 / len(shares)


def test_the_threshold_is_the_one_of_the_medium_that_needs_most() -> None:
    low, high = np.linspace(0.0, 0.6, ENOUGH), np.linspace(0.0, 0.88, ENOUGH)
    reports = samples(ENOUGH, origin="composed", medium="report")
    logs = samples(ENOUGH, origin="captured")
    alone = fit_category_threshold(logs, high)
    assert fit_category_threshold([*reports, *logs], np.concatenate([low, high])) == alone
    assert alone > fit_category_threshold(reports, low)


def test_failures_with_a_category_and_guessed_labels_do_not_count() -> None:
    shares = np.linspace(0.0, 0.8, ENOUGH)
    plain = samples(ENOUGH, origin="captured")
    others = [
        *samples(ENOUGH, category="GC.1", origin="captured"),
        *samples(ENOUGH, origin="captured", labelled_for="symptom"),
    ]
    both = np.concatenate([shares, np.ones(len(others))])
    assert fit_category_threshold([*plain, *others], both) == fit_category_threshold(plain, shares)


@pytest.mark.parametrize(("share", "place"), [(0.0, 0), (1.0, 1)])
def test_the_threshold_stays_within_its_range(share: float, place: int) -> None:
    made = samples(ENOUGH, origin="captured")
    assert fit_category_threshold(made, np.full(ENOUGH, share)) == constants.CATEGORY_THRESHOLD_RANGE[place]


def test_few_samples_leave_the_threshold_as_it_is() -> None:
    assert fit_category_threshold(samples(3), np.ones(3)) == constants.CATEGORY_THRESHOLD
