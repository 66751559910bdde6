import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import adaptation
from classifiers.model.artifact import Model
from service.cli.classifier import evaluate, evaluate_adaptation

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


def test_cases_of_another_site_are_tested_though_their_ids_are_the_same(
    model: Model, cases: list[LabelledCase]
) -> None:
    here, there = ([one for one in cases if one.group == group] for group in ("oom", "key"))
    labels, tests = ([replace(one, id=f"site-{n}") for n, one in enumerate(site)] for site in (here, there))
    found = adaptation.measure(model, signatures.packaged(), labels, tests, now=NOW)
    assert (found.tests, found.left_out) == (len(tests), 0)
    moved = [replace(one, group="of another model") for one in labels]
    with pytest.raises(ValueError, match="no label"):
        adaptation.measure(model, signatures.packaged(), labels, moved, now=NOW)


def test_without_labels_the_command_shows_that_nothing_changes(
    model: Model, cases: list[LabelledCase], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    labels = evaluate.read_labels(tmp_path / "empty.jsonl")
    assert labels == []
    assert evaluate_adaptation.run(labels, cases, model, signatures.packaged(), None, lambda _: None) == 0
    shown = capsys.readouterr().out
    assert "0 labels" in shown
    assert "+0.000 [+0.000, +0.000]" in shown


def test_an_axis_that_no_test_has_is_not_shown(model: Model, cases: list[LabelledCase]) -> None:
    without = [replace(one, labels=replace(one.labels, best={**one.labels.best, "side": None})) for one in cases]
    found = adaptation.measure(model, signatures.packaged(), [], without, now=NOW)
    assert "nan" not in evaluate_adaptation.table(found)
    assert "side" not in evaluate_adaptation.table(found)


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
