"""Somebody who can write to the model's folder can't replace the model unnoticed where a key is set."""

import json
from pathlib import Path

import pytest

from classifiers.model import artifact, training
from classifiers.model.artifact import Model
from service.__main__ import main
from service.cli import exit_codes
from tests.attack.server import set_environment
from tests.classifiers.conftest import KINDS, few_signatures, labelled
from tests.service.databases import copy_migrated

KEY, OTHER = "k" * 32, "o" * 32


@pytest.fixture(scope="module")
def model() -> Model:
    return training.train([labelled(kind, number) for kind in KINDS for number in range(4)], few_signatures())[0]


@pytest.fixture
def folder(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "model"
    artifact.save(model, where)
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path, MODEL_DIR=str(where), MODEL_KEY=KEY)
    return where


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["model", "show"], ["classify", "/dev/null"]])
def test_an_unsealed_model_stops_the_start_and_the_message_names_the_setting(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main(command) == exit_codes.NO_MODEL
    error = capsys.readouterr().err
    assert "FAULTLINE_MODEL_KEY" in error
    assert "faultline model seal" in error
    assert KEY not in error


def test_a_sealed_model_is_used_and_one_of_another_key_is_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "seal"]) == 0
    assert main(["model", "show"]) == 0
    capsys.readouterr()
    assert main(["model", "list", "--json"]) == 0
    assert [one["usable"] for one in json.loads(capsys.readouterr().out)] == [True]
    set_environment(monkeypatch, tmp_path, MODEL_DIR=str(folder), MODEL_KEY=OTHER)
    assert main(["model", "show"]) == exit_codes.NO_MODEL
    capsys.readouterr()
    assert main(["model", "list", "--json"]) == 0
    assert [one["usable"] for one in json.loads(capsys.readouterr().out)] == [False]


def test_without_a_key_a_model_is_used_unsealed_and_can_not_be_sealed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_environment(monkeypatch, tmp_path, MODEL_DIR=str(folder))
    assert main(["model", "show"]) == 0
    assert main(["model", "seal"]) == exit_codes.USAGE
    assert "FAULTLINE_MODEL_KEY" in capsys.readouterr().err
