"""The arguments of `make bench`."""

from collections.abc import Callable

import pytest

from tests.bench import __main__ as bench


def test_without_arguments_the_default_sections_run_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def recorder(name: str) -> Callable[[], object]:
        return lambda: ran.append(name)

    monkeypatch.setattr(bench, "SECTIONS", {name: recorder(name) for name in bench.SECTIONS})
    bench.main([])
    assert ran == ["classify", "pipeline"]
    assert [line for line in capsys.readouterr().out.splitlines() if line in bench.SECTIONS] == ran


def test_only_the_given_sections_run() -> None:
    assert bench.sections_of(["page", "classify"]) == ["page", "classify"]


def test_an_unknown_section_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench.sections_of(["speed"])
    assert stopped.value.code == 2
    assert "'speed'" in capsys.readouterr().err
