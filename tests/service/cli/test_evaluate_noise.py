"""Verdicts of the installed model hold among harmless node events and neutral log lines."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from classifiers import signatures
from classifiers.composition import training_cases
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import noise_robustness
from classifiers.evaluation.noise_robustness import Figures
from classifiers.model import artifact
from service.__main__ import main
from service.cli.classifier.evaluate_noise import resubmitter
from service.recommend import policy
from service.settings import default_model_dir
from tests.classifiers.conftest import small_model
from tests.labs.need import missing


@dataclass(frozen=True)
class Reached:
    """What a condition reaches, less two cases (a resubmit, a fault): shares of cases, a number of resubmits.

    The room is for a model that is trained anew. Without one of the questions on node events (node, time, log), the
    figures are lower than this.
    """

    side_stays: float
    cause_stays: float
    resubmits: int
    faults_found: float


# docs/quality.md has the targets. A change that reaches more raises these figures.
REACHED = {
    "mix 10": Reached(0.865, 0.85, 3, 0.91),
    "mix 50": Reached(0.89, 0.865, 4, 0.91),
    "mix 200": Reached(0.84, 0.80, 5, 0.79),
    "log lines 0": Reached(0.92, 0.866, 3, 0.91),
    "node events 200": Reached(0.93, 0.89, 2, 0.87),
}
CASES = 75  # a sample that takes seconds; `faultline evaluate --noise` measures held-out kinds
UNDER = [one for one in noise_robustness.conditions(by_reason=False) if one.events != 1]


@pytest.fixture(scope="module")
def figures() -> dict[str, Figures]:
    folder = Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())
    if not (folder / "manifest.json").exists():
        missing("there is no trained model (make install)")
    cases = noise_robustness.sample([*training_cases.captured(), *training_cases.long_runs()], CASES, seed=3)
    diagnoser = Diagnoser(artifact.load(folder), signatures.packaged())
    done = noise_robustness.trials(cases, diagnoser.diagnose, resubmitter(policy.load(None)), under=UNDER)
    return {f"{one.name} {one.events}": one for one in noise_robustness.summarize(done)}


noisy = pytest.mark.parametrize("name", [f"{one.name} {one.events}" for one in UNDER])


@pytest.mark.slow
@noisy
def test_side_and_cause_stay(figures: dict[str, Figures], name: str) -> None:
    assert figures[name].side_stays.value >= REACHED[name].side_stays
    assert figures[name].cause_stays.value >= REACHED[name].cause_stays


@pytest.mark.slow
@noisy
def test_noise_seldom_turns_a_resubmit_on(figures: dict[str, Figures], name: str) -> None:
    assert figures[name].resubmits_turned_on <= REACHED[name].resubmits


@pytest.mark.slow
@noisy
def test_a_true_fault_is_found_among_harmless_events(figures: dict[str, Figures], name: str) -> None:
    assert figures[name].faults_found.cases > 15
    assert figures[name].faults_found.value >= REACHED[name].faults_found


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, cases, written = tmp_path / "model", tmp_path / "cases.jsonl", tmp_path / "noise.json"
    artifact.save(small_model(), folder)
    flat = {"id": "c1", "log": "KeyError: 'lr_5'", "side": "user", "cause": "USER.1", "retry": "futile"}
    cases.write_bytes(orjson.dumps(flat) + b"\n" + orjson.dumps({**flat, "id": "c2"}))
    arguments = ["evaluate", "--noise", "--cases", str(cases), "--model", str(folder), "--json", str(written)]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["noise", "events"]
    assert [line.split()[:2] for line in lines[1:5]] == [["mix", "1"], ["mix", "10"], ["mix", "50"], ["mix", "200"]]
    content = json.loads(written.read_text())
    assert {one["name"] for one in content["figures"]} >= {"mix", "log lines", "repaired_before"}
    assert content["model"]


@pytest.mark.parametrize("option", [["--compare"], ["--html", "report.html"]])
def test_options_that_do_not_go_with_noise_are_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--noise", *option]) == 2
    assert "--noise" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--compare", "--cases", "cases.jsonl"],
        ["--compare", "--json", "figures.json"],
        ["--adaptation", "labels.jsonl", "tests.jsonl", "--hold-out", "kind"],
    ],
)
def test_options_that_would_be_ignored_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *options]) == 2
    assert "leave out" in capsys.readouterr().err
