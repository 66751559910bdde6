import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import adaptation
from classifiers.model.artifact import Model

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def test_without_labels_nothing_changes(model: Model, cases: list[LabelledCase]) -> None:
    found = adaptation.measure(model, signatures.packaged(), [], cases, now=NOW)
    assert found.differences["side"].gain == found.differences["ece"].gain == 0.0
    assert found.before.axes["cause"].accuracy == found.after.axes["cause"].accuracy
    assert found.recurrence is None


def test_cases_of_labelled_groups_are_not_tested(model: Model, cases: list[LabelledCase]) -> None:
    labels = [one for one in cases if one.group == "oom"]
    found = adaptation.measure(model, signatures.packaged(), labels, cases, now=NOW)
    assert found.left_out == len(labels)
    assert found.tests == len(cases) - len(labels)
    with pytest.raises(ValueError, match="no label"):
        adaptation.measure(model, signatures.packaged(), cases, cases, now=NOW)


def test_a_recurrence_takes_a_label_that_the_model_does_not_give(model: Model, cases: list[LabelledCase]) -> None:
    wrong = {"side": "system", "cause": "SYS.3", "category": "none", "symptom": "none", "retry": "futile"}
    odd = next(one for one in cases if one.group == "key")
    odd = replace(odd, labels=replace(odd.labels, best=wrong, allowed={axis: (one,) for axis, one in wrong.items()}))
    found = adaptation.recurrence(model, signatures.packaged(), [odd], now=NOW)
    assert found.windows > 0
    assert found.side == found.cause == 1.0


@pytest.mark.parametrize("date", ["2026-11-23 12:41:13", "2026/11/23 12:41:13", "2026-11-23T12:41:13Z"])
def test_a_recurrence_has_other_numbers_and_a_date_that_can_be_read(date: str) -> None:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(text=f"{date} worker 48211 of 2048 lost"),))
    text = adaptation.renamed(raw, random.Random(3)).streams[0].text
    assert text.startswith(date)
    assert "48211" not in text
    assert "2048" not in text
