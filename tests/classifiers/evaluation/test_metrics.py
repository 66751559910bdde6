from dataclasses import replace

import orjson
import pytest

from classifiers import signatures
from classifiers.data.labelled_cases import AXES, DatasetError, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import case_files, figures, metrics, report
from classifiers.evaluation.baselines import majority, signatures_only
from classifiers.evaluation.metrics import answer_of, measure

FLAT = {
    "id": "c1",
    "group": "g",
    "set": "cause",
    "event": {"status": "oom_killed", "n_gpus": 8, "n_nodes": 2},
    "log": "CUDA out of memory",
    "side": "user",
    "side_ok": ["user"],
    "cause": "USER.1",
    "cause_ok": ["USER.1"],
    "category": "DL.1",
    "category_ok": ["DL.1"],
    "symptom": "D.1.2",
    "symptom_ok": ["D.1.2"],
    "retry": "futile",
}


def test_flat_cases_are_read_and_their_set_says_what_is_measured() -> None:
    lines = [orjson.dumps(FLAT), orjson.dumps({**FLAT, "id": "c2", "set": "symptom"})]
    first, second = case_files.read_cases(lines, "x")
    assert first.raw.job.status == "out_of_memory"
    assert len(first.raw.job.nodes) == 2
    assert (first.labels.best["cause"], first.labels.best["symptom"]) == ("USER.1", None)
    assert (second.labels.best["cause"], second.labels.best["symptom"]) == (None, "D.1.2")


def test_the_error_of_a_bad_line_names_its_place() -> None:
    with pytest.raises(DatasetError, match="x:1: log: expected a text"):
        case_files.read_cases([orjson.dumps({"id": "c", "log": None})], "x")
    with pytest.raises(DatasetError, match="x:1: line: expected JSON"):
        case_files.read_cases([b"{"], "x")


def test_the_model_is_measured_with_two_baselines(cases: list[LabelledCase], diagnoser: Diagnoser) -> None:
    answers = [answer_of(one) for one in diagnoser.diagnose([case.raw for case in cases])]
    own = measure("own", cases, answers)
    constant = measure("majority", cases, majority(cases))
    plain = measure("plain", cases, signatures_only([case.raw for case in cases], signatures.packaged()))
    assert own.axes["cause"].accuracy > 0.9 > constant.axes["cause"].accuracy
    assert own.axes["cause"].accuracy >= plain.axes["cause"].accuracy > constant.axes["cause"].accuracy
    assert own.root_line == (1.0, len(cases))
    parts = figures.measure_parts(cases, [("own", answers), ("majority", majority(cases))])
    page = report.page([own, constant, plain], source="<cases>", model="m & n", parts=parts)
    assert "&lt;cases&gt;" in page
    assert "<cases>" not in page
    assert page.count("<svg") == 2
    assert "Recall by cause" in page


def test_calibration_figures_by_hand() -> None:
    points = [(0.95, True), (0.95, True), (0.55, False), (0.55, True)]
    assert metrics.expected_calibration_error(points) == pytest.approx(0.05)
    assert metrics.auroc(points) == pytest.approx(2.5 / 3)
    assert metrics.coverage_curve(points)[-1] == (1.0, 0.75)
    assert [count for _, _, count in metrics.reliability(points)] == [2, 2]


def test_any_label_an_expert_could_defend_is_right(cases: list[LabelledCase]) -> None:
    found = measure("majority", cases[:1], majority(cases[:1]))
    assert found.axes["cause"].accuracy == 1
    assert found.weak["cause"] == {"USER.1": 1}


def test_runs_of_several_ranks_are_distinguished() -> None:
    def case(number: int, ranks: int, root: int) -> LabelledCase:
        line = f"KeyError: 'y{number}'"
        flat = {**FLAT, "id": f"c{number}", "log": line, "root_rank": root, "root_line": line}
        return replace(case_files.from_measured(flat, "x"), provenance={"origin": "measured", "ranks": ranks})

    cases = [case(0, 1, 0), case(1, 4, 2), case(2, 4, 3)]
    answers = [
        metrics.Answer(labels=dict.fromkeys(AXES, "none"), rank=2, initiating=(f"KeyError: 'y{number}'",))
        for number in (0, 1, 9)
    ]
    found = measure("x", cases, answers)
    assert [metrics.is_of_many_ranks(one) for one in cases] == [False, True, True]
    assert found.root_rank[1] == 3
    assert found.root_rank[0] == pytest.approx(1 / 3)


def test_the_medium_of_a_case_is_read_from_its_text_where_it_is_not_stated() -> None:
    log, report_case = case_files.read_cases(
        [orjson.dumps(FLAT), orjson.dumps({**FLAT, "id": "c2", "log": "I do not know why it is out of memory"})], "x"
    )
    assert (metrics.medium_of(log), metrics.medium_of(report_case)) == ("log", "report")


def test_guessed_labels_are_not_counted() -> None:
    case = case_files.from_measured(FLAT, "x")
    guessed = replace(case, provenance={"origin": "composed", "labelled_for": "symptom"})
    found = measure("majority", [case, guessed], majority([case, guessed]))
    assert (found.axes["cause"].cases, found.axes["symptom"].cases) == (1, 0)
