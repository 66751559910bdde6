"""`faultline policy check|show`."""

from pathlib import Path

import pytest

from service.__main__ import main


def test_the_rules_in_force_are_shown_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "policy builtin-2"
    assert lines[1].startswith("1. cancelled: ")


def test_a_sound_file_is_said_to_be_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    rule = '[[rule]]\nname = "a"\ndecision = "ask"\nsays = "b"\nsource = "c"\n'
    file.write_text(f'version = "1"\nprior_weight = 1\n{rule}')
    assert main(["policy", "check", str(file)]) == 0
    assert "sound" in capsys.readouterr().out


def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('version = "1"\nprior_weight = "much"\n[[rule]]\nname = "a"\n')
    assert main(["policy", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert "prior_weight" in said
    assert "rule.0.decision" in said
