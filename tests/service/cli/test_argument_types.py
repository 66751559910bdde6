"""Values on the command line: spans, with one reading for all commands, and conditions of failures."""

from datetime import timedelta

import pytest

from service.__main__ import main
from service.cli.argument_types import span
from service.cli.classifier import reclassify
from service.errors import InvalidInput


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


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["cause=SYS.55"], "expected cause= with one of HW.GPU.1"),
        (["side=hardwear"], "expected side= with one of hardware, system, user, got hardwear"),
        (["side=user", "side=system"], "expected each key once, got side twice"),
        (["job=7"], "expected KEY=VALUE with one of"),
        (["cluster="], "expected KEY=VALUE with one of"),
    ],
)
def test_a_condition_that_matches_no_failure_by_mistake_is_refused(given: list[str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        reclassify.filters_of(given)


def test_conditions_are_filters_of_the_list() -> None:
    found = reclassify.filters_of(["cause=SYS.5", "cluster=a=b"])
    assert found == {"cause": "SYS.5", "cluster": "a=b"}
