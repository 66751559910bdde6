"""The figures of noise: counted against the verdict without noise, with made-up classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from classifiers.contracts import RawCase, Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import noise_robustness
from classifiers.evaluation.noise_robustness import Figures
from tests.classifiers.conftest import labelled

FAULT = "NVRM: Xid (PCI:0000:0f:00): 79, pid=1, name=python, GPU has fallen off the bus."
VERDICT = Verdict(
    side="user", cause="USER.1", cause_top=("USER.1",), category=None, symptom=None, symptom_top=(),
    platform_symptom="crash", confidence=0.9, abstained=False, retry_outlook="futile", fingerprint="f",
    explanation="", model="m", rules="r",
)  # fmt: skip
HARDWARE = replace(VERDICT, side="hardware", cause="HW.GPU.2", cause_top=("HW.GPU.2",), retry_outlook="helps_elsewhere")


def fault_case(number: int) -> LabelledCase:
    return labelled_cases.parse(
        {
            "id": f"fault-{number}",
            "group": "g",
            "kind": f"k{number}",
            "event": {
                "status": "failed",
                "nodes": ["n1"],
                "logs": [{"rank": 0, "tail": "step 1\n"}],
                "node_events": [{"node": "n1", "text": FAULT}],
            },
            "labels": {
                "side": "hardware",
                "cause": "HW.GPU.2",
                "category": "none",
                "symptom": "none",
                "retry": "helps_elsewhere",
            },
            "provenance": {"origin": "composed"},
        },
        "test",
    )


CASES = [*(labelled("key", number) for number in range(6)), *(fault_case(number) for number in range(3))]


def steady(cases: Sequence[RawCase]) -> list[Verdict]:
    """Sees the fault wherever it is, and nothing else."""
    return [HARDWARE if any(event.text == FAULT for event in case.node_events) else VERDICT for case in cases]


def confused(cases: Sequence[RawCase]) -> list[Verdict]:
    """Takes many node events for hardware, and does not see the fault among them."""
    return [HARDWARE if 1 <= len(case.node_events) <= 9 else VERDICT for case in cases]


def resubmits(_event: Mapping[str, Any], verdict: Verdict) -> bool:
    return verdict.side == "hardware"


def figures(classify: noise_robustness.Classify) -> dict[tuple[str, int], Figures]:
    done = noise_robustness.trials(CASES, classify, resubmits)
    return {(one.name, one.events): one for one in noise_robustness.summarize(done)}


def test_a_classifier_that_ignores_noise_keeps_everything() -> None:
    found = figures(steady)
    assert {("mix", 1), ("mix", 10), ("mix", 50), ("mix", 200), ("log lines", 0), ("corrected", 10)} <= set(found)
    for one in found.values():
        assert one.side_stays.value == one.cause_stays.value == 1.0
        assert one.resubmits_turned_on == 0
        assert one.faults_found.value == 1.0
        assert one.faults_found.cases == 3


def test_a_confused_classifier_loses_sides_turns_resubmits_on_and_misses_faults() -> None:
    found = figures(confused)
    assert found["mix", 1].side_stays.value == pytest.approx(3 / 9)
    assert found["mix", 1].resubmits_turned_on == 6
    assert found["mix", 1].faults_found.value == 1.0
    assert found["mix", 200].side_stays.value == pytest.approx(6 / 9)
    assert found["mix", 200].resubmits_turned_on == 0
    assert found["mix", 200].faults_found.value == 0.0
    low, high = found["mix", 1].side_stays.low, found["mix", 1].side_stays.high
    assert low < 3 / 9 < high


def test_the_same_seed_gives_the_same_noise() -> None:
    seen: list[list[RawCase]] = []

    def spy(cases: Sequence[RawCase]) -> list[Verdict]:
        seen.append(list(cases))
        return steady(cases)

    for seed in (1, 1, 2):
        noise_robustness.trials(CASES[:2], spy, resubmits, seed=seed, under=noise_robustness.conditions()[:1])
    assert seen[1] == seen[3] != seen[5]


def test_noise_of_one_reason_leaves_the_logs_alone() -> None:
    seen: list[list[RawCase]] = []

    def spy(cases: Sequence[RawCase]) -> list[Verdict]:
        seen.append(list(cases))
        return steady(cases)

    under = [one for one in noise_robustness.conditions() if one.name == "corrected"]
    noise_robustness.trials(CASES, spy, resubmits, under=under)
    assert [case.streams for case in seen[0]] == [case.streams for case in seen[1]]
    assert all(len(case.node_events) >= 10 for case in seen[1])


def test_a_sample_has_faults_and_many_kinds() -> None:
    chosen = noise_robustness.sample(CASES, 6, seed=1)
    assert len(chosen) == len({case.id for case in chosen}) == 6
    assert sum(bool(case.raw.node_events) for case in chosen) >= 2
    assert len({case.kind for case in chosen}) == 6
    assert len(noise_robustness.sample(CASES, 100, seed=1)) == len(CASES)
