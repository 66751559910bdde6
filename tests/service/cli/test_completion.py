"""Completion scripts offer every command and its options, and bash accepts its script."""

import shutil
import subprocess

import pytest

from service.__main__ import main
from service.cli.commands import COMMANDS


def script_for(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_command_and_nested_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_for(shell, capsys)
    assert all(command in script for command in COMMANDS)
    for word in ("revoke", "no-golden", "with-worker", "kubernetes"):
        assert word in script


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["cl"], {"classify"}),
        (["token", ""], {"create", "list", "revoke", "--help"}),
        (["token", "create", "--sc"], {"--scope"}),
        (["db", "up"], {"upgrade"}),
        (["completion", "f"], {"fish"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_bash_completes_words_by_command(
    typed: list[str], expected: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(f"'{word}'" for word in ("faultline", *typed))
    ask = f'\nCOMP_WORDS=({words}); COMP_CWORD={len(typed)}; _faultline; printf "%s\\n" "${{COMPREPLY[@]}}"\n'
    done = subprocess.run(
        [shutil.which("bash") or "/bin/bash", "-c", script_for("bash", capsys) + ask],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == expected
