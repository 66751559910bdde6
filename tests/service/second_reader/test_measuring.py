"""Gain and cost of recorded answers, computed by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from classifiers.contracts import Evidence, Verdict
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation.case_files import from_measured
from classifiers.model import artifact
from service.__main__ import main
from service.errors import InvalidInput
from service.second_reader import measuring
from tests.classifiers.conftest import small_model
from tests.service.pipeline.test_diagnose import GUESS
from tests.service.second_reader.chat_endpoint import SETTLED


def case(number: int, side: str = "system", cause: str = "SYS.5") -> LabelledCase:
    return from_measured({"id": f"c{number}", "log": "503", "side": side, "cause": cause}, "x")


def verdict(kind: str, *, abstained: bool = True) -> Verdict:
    evidence = (Evidence("503 Service Unavailable", "initiating"),)
    return replace(GUESS, fingerprint=kind, abstained=abstained, evidence=evidence)


def answers(**content: Any) -> dict[str, measuring.RecordedAnswer]:
    lines = "\n".join(
        json.dumps({"case": name, "content": json.dumps(one), "usage": {"prompt_tokens": 900, "completion_tokens": 40}})
        for name, one in content.items()
    )
    return measuring.read_answers(lines.encode().splitlines(), "answers")


CASES = [case(0), case(1), case(2), case(3), case(4, "user", "USER.1")]
VERDICTS = [verdict("a"), verdict("a"), verdict("b"), verdict("c"), verdict("d", abstained=False)]


def test_each_doubtful_kind_is_asked_about_once() -> None:
    asked = measuring.questions(CASES, VERDICTS)
    assert list(asked) == ["c0", "c2", "c3"]
    lines = [json.loads(line) for line in measuring.export(asked).splitlines()]
    assert [line["case"] for line in lines] == ["c0", "c2", "c3"]
    assert lines[0]["response_format"]["type"] == "json_schema"
    assert "503 Service Unavailable" in lines[0]["messages"][1]["content"]


def test_gain_and_cost_are_counted() -> None:
    undecided = {**SETTLED, "side": "undecided", "cause": None}
    found = measuring.gain(CASES, VERDICTS, answers(c0=SETTLED, c2=undecided, c3={"side": "system"}))
    assert (found.kinds, found.invalid, found.missing, found.doubtful, found.settled) == (3, 1, 0, 4, 2)
    assert (found.side_right, found.cause_right, found.guess_right) == (1.0, 1.0, 0.0)
    assert found.answered == pytest.approx(0.2)
    assert found.answered_with == pytest.approx(0.6)
    assert (found.right_when_answered, found.right_when_answered_with) == (1.0, 1.0)
    assert (found.prompt_tokens, found.completion_tokens) == (2700, 120)


def test_a_wrong_reader_lowers_what_is_right_when_answered() -> None:
    wrong = {**SETTLED, "side": "hardware", "cause": "HW.GPU.2"}
    found = measuring.gain(CASES, VERDICTS, answers(c0=wrong))
    assert (found.side_right, found.missing) == (0.0, 2)
    assert found.right_when_answered_with == pytest.approx(1 / 3)


def test_without_an_answer_nothing_changes() -> None:
    found = measuring.gain(CASES, VERDICTS, {})
    assert math.isnan(found.side_right)
    assert found.answered == found.answered_with
    assert "0.200 -> 0.200" in measuring.text(found)


@pytest.mark.parametrize("line", [b"[]", b'{"case": 1}', b'{"case": "c0"}', b'{"case": "c0", "content": null}'])
def test_a_wrong_line_of_answers_is_named(line: bytes) -> None:
    with pytest.raises(InvalidInput, match="answers:1"):
        measuring.read_answers([line], "answers")


def test_the_command_exports_questions_and_scores_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact.save(small_model(), tmp_path / "model")
    cases, exported, recorded = tmp_path / "cases.jsonl", tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    flat = {"id": "c1", "log": "well, it stopped", "side": "system", "cause": "SYS.5", "retry": "helps"}
    cases.write_text(json.dumps(flat))
    common = ["evaluate", "--cases", str(cases), "--model", str(tmp_path / "model")]
    assert main([*common, "--second-reader-export", str(exported)]) == 0
    asked = [json.loads(line) for line in exported.read_text().splitlines()]
    assert f"{len(asked)} questions about 1 cases" in capsys.readouterr().out
    recorded.write_text("".join(json.dumps({"case": one["case"], "content": "?"}) + "\n" for one in asked))
    assert main([*common, "--second-reader-answers", str(recorded)]) == 0
    assert "answers that do not follow the schema" in capsys.readouterr().out
    recorded.write_text("{")
    assert main([*common, "--second-reader-answers", str(recorded)]) == 2
    assert "answers.jsonl:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--second-reader-export", "out"],
        ["--cases", "in", "--second-reader-export", "out", "--second-reader-answers", "in"],
        ["--cases", "in", "--second-reader-answers", "in", "--noise"],
        ["--cases", "in", "--second-reader-answers", "in", "--html", "out"],
    ],
)
def test_options_that_do_not_go_with_a_second_reader_are_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("")
    names = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    assert main(["evaluate", *(names.get(one, one) for one in options)]) == 2
    assert "second reader" in capsys.readouterr().err
