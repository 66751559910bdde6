"""Copies of composed texts get other surroundings; what tells of the failure, and first copies, stay."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers import surroundings
from classifiers.case import JobFacts, LogStream, RawCase
from classifiers.dataset import LabelledCase, Labels

TOLD = ("all four workers stop after the first epoch, no error", "RuntimeError: stuck in allreduce")


def case(number: int, copy: int, text: str, symptom: str = "D.2.1", about: str = "symptom") -> LabelledCase:
    best = {"side": "user", "cause": "USER.1", "category": "none", "symptom": symptom, "retry": "futile"}
    return LabelledCase(
        id=f"composed-kind-{number}-0-{copy}",
        group=f"kind-{number}",
        kind=f"kind-{number}",
        raw=RawCase(job=JobFacts(status="failed"), streams=(LogStream(text=text),)),
        labels=Labels(best=best, allowed={axis: (label,) for axis, label in best.items()}),
        provenance={"origin": "composed", "about": about},
    )


def of(text: str, about: str = "symptom") -> list[LabelledCase]:
    hangs = [case(number, copy, text, about=about) for number in range(20) for copy in range(2)]
    return [
        *hangs,
        *(case(number, 0, f"it is slower\nimport n{number}\ntorch==2.{number}", "D.2.3") for number in range(9)),
    ]


@pytest.mark.parametrize(
    "line", ["torch==2.1.0", "- Python version: 3.9", "import horovod.torch as hvd", "$ nvidia-smi"]
)
def test_what_is_pasted_beside_any_failure_is_a_surrounding(line: str) -> None:
    assert surroundings.is_surrounding(line)


@pytest.mark.parametrize(
    "line", [*TOLD, "import horovod: undefined symbol, it fails", "worse with 2.1.0 than", "v" * 999]
)
def test_what_tells_of_a_failure_is_none(line: str) -> None:
    assert not surroundings.is_surrounding(line)


def test_copies_get_lines_of_others_and_keep_every_line_that_tells() -> None:
    given_cases = of("\n".join([*TOLD, "torch==1.4.0"]))
    out = list(surroundings.changed(given_cases))
    assert [one.id for one in out] == [one.id for one in given_cases]
    changed = [one for one, was in zip(out, given_cases, strict=True) if one != was]
    assert 10 <= len(changed) <= 20
    for one in changed:
        lines = one.raw.streams[0].text.split("\n")
        assert one.id.endswith("-1")
        assert [line for line in lines if line in TOLD] == list(TOLD)
    gone = Counter("torch==1.4.0" in one.raw.streams[0].text.split("\n") for one in changed)
    assert gone[True] > 0


def test_what_was_composed_for_causes_too_or_captured_stays() -> None:
    alone = of("stuck\ntorch==1.4.0", about="cause")
    captured = [replace(one, provenance={"origin": "captured", "program": "hang"}) for one in of("stuck\ntorch==1.4.0")]
    assert list(surroundings.changed(alone))[:40] == alone[:40]
    assert list(surroundings.changed(captured)) == captured


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_any_text_comes_out_the_same_twice(lines: list[str]) -> None:
    given_cases = of("\n".join(lines))
    assert list(surroundings.changed(given_cases)) == list(surroundings.changed(given_cases))
