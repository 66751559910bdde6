"""Somebody who can write to the model's folder can't replace the model unnoticed where a key is set."""

import grp
import json
import logging
from pathlib import Path

import pytest

from classifiers.model import artifact, training
from classifiers.model.artifact import Model
from service import compose, settings
from service.__main__ import main
from service.cli import exit_codes
from service.cli.processes import start_checks
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


@pytest.fixture
def unsealed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that is used without a key."""
    set_environment(monkeypatch, tmp_path, MODEL_DIR=str(folder))
    return folder


def warning(caplog: pytest.LogCaptureFixture) -> str:
    """What the checks of a start warn of."""
    caplog.clear()
    services = compose.build(settings.read())
    start_checks.check(services)
    services.close()
    return "\n".join(one.message for one in caplog.records if one.levelno == logging.WARNING)


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("place", ["", artifact.MANIFEST, artifact.WEIGHTS, artifact.PARAMETERS, ".."])
def test_a_model_that_others_may_write_to_is_named_at_the_start(
    unsealed: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    mode: int,
) -> None:
    assert warning(caplog) == ""
    written = unsealed.parent if place == ".." else unsealed / place
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group(("team", "x", number, ["ana"])))
    written.chmod(mode)
    assert f"{written} " in warning(caplog)
    assert "FAULTLINE_MODEL_KEY" in warning(caplog)
    for command in (["model", "show"], ["model", "list"], ["model", "list", "--json"]):
        capsys.readouterr()
        assert main(command) == 0
        shown = capsys.readouterr()
        assert f"{written} " in shown.err
        assert "others than its owner" not in shown.out


def test_a_key_makes_up_for_a_model_that_others_may_write_to(
    folder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["model", "seal"]) == 0
    folder.chmod(0o777)
    capsys.readouterr()
    assert main(["model", "show"]) == 0
    assert "others than its owner" not in capsys.readouterr().err
    assert warning(caplog) == ""


def test_a_model_folder_that_is_not_there_is_no_danger_yet(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_environment(monkeypatch, tmp_path, MODEL_DIR=str(folder / "no" / "model"))
    assert warning(caplog) == ""


def test_a_group_of_the_owner_alone_and_a_parent_with_the_sticky_bit_are_no_danger(
    unsealed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unsealed.parent.chmod(0o1777)
    unsealed.chmod(0o775)  # of the owner's own group, as with the umask 002 of many systems
    assert warning(caplog) == ""


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
