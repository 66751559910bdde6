"""Training cases with noise: a share of them, from the half of the entries for training, with the same labels."""

from dataclasses import replace

from classifiers.composition import noise, noisy_cases
from classifiers.composition.noisy_cases import TrainingNoise
from classifiers.data import noise_data
from classifiers.data.labelled_cases import LabelledCase
from tests.classifiers.conftest import KINDS, labelled

CASES = [labelled(kind, number) for kind in KINDS for number in range(12)]


def changed(cases: list[LabelledCase]) -> list[LabelledCase]:
    return [new for old, new in zip(CASES, cases, strict=True) if new.event != old.event]


def test_the_share_of_cases_gets_noise_and_all_keep_their_labels() -> None:
    cases = noisy_cases.with_noise(CASES, TrainingNoise(share=0.3))
    assert 0.15 < len(changed(cases)) / len(CASES) < 0.45
    assert [(case.id, case.kind, case.labels) for case in cases] == [
        (case.id, case.kind, case.labels) for case in CASES
    ]
    assert not changed(noisy_cases.with_noise(CASES, TrainingNoise(share=0.0)))


def test_the_raw_case_is_that_of_the_noisy_event() -> None:
    cases = changed(noisy_cases.with_noise(CASES, TrainingNoise(share=1.0, most_events=40)))
    counts = [len(case.raw.node_events) for case in cases]
    assert max(counts) <= 40
    assert len(set(counts)) > 10
    assert sum(count < 10 for count in counts) > len(counts) / 3


def test_reports_get_no_noise() -> None:
    reports = [replace(case, provenance={**case.provenance, "medium": "report"}) for case in CASES]
    assert noisy_cases.with_noise(reports, TrainingNoise(share=1.0)) == reports


def test_only_entries_for_training_are_used() -> None:
    measured = {
        event.text for entry in noise_data.node_entries("measure") for event in entry.events if "$" not in event.text
    }
    assert len(measured) > 30
    cases = noisy_cases.with_noise(CASES, TrainingNoise(share=1.0, most_events=noise.MOST_EVENTS))
    assert not measured & {event.text for case in cases for event in case.raw.node_events}
