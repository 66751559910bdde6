"""The command: finds its subcommands, and ends in one clear line where it can't go on."""

import io
import os
import subprocess
import sys

import pytest

from service.__main__ import main
from service.cli import output
from service.cli.commands import COMMANDS
from service.cli.exit_codes import NO_MODEL


def test_help_names_every_command_and_imports_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    words = capsys.readouterr().out.split()
    assert all(command in words for command in COMMANDS)
    light = "import sys, service.__main__; print('sklearn' in sys.modules, 'sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["policy"], ["db", "sideways"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: faultline" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: faultline {command}" in capsys.readouterr().out


def test_a_wrong_setting_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_PORT", "eighty")
    assert main(["config", "show"]) == 2
    assert capsys.readouterr().err.startswith("faultline: FAULTLINE_PORT: ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "service", "config", "show"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert "Traceback" not in done.stderr


def test_characters_that_the_terminal_does_not_have_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    output.line("Größe: 磁盘")
    terminal.seek(0)
    assert terminal.read() == "Größe: \\u78c1\\u76d8\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["config show >&-", "config show 2>&-", "classify - <&-"])
def test_a_closed_standard_stream_is_like_the_null_device(command: str) -> None:
    """Some programs start others with these descriptors closed."""
    script = f'exec "{sys.executable}" -m service {command}'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode in {0, NO_MODEL}, done.stderr
    assert "Traceback" not in done.stderr
