"""Spans on the command line: one reading for all commands, and a usage error for everything else."""

from datetime import timedelta

import pytest

from service.__main__ import main
from service.cli.argument_types import span


@pytest.mark.parametrize(
    ("text", "expected"), [("28d", timedelta(days=28)), ("36h", timedelta(hours=36)), ("0d", timedelta())]
)
def test_a_span_is_days_or_hours(text: str, expected: timedelta) -> None:
    assert span(text) == expected


@pytest.mark.parametrize("text", ["a while", "", "d", "-1d", "+1d", "1.5d", "99999999999d", "２d", "1w"])
@pytest.mark.parametrize("command", [["reclassify"], ["policy", "replay", "--policy", "x.toml"]])
def test_anything_else_is_a_usage_error(command: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command, f"--since={text}"])
    assert stopped.value.code == 2
    assert "such as 28d or 36h" in capsys.readouterr().err
