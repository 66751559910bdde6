"""The arguments of `make bench`."""

from collections.abc import Callable

import pytest

from tests.bench import __main__ as bench
from tests.bench.stages import StageClock, table


def test_without_arguments_the_default_sections_run_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def recorder(name: str) -> Callable[[], object]:
        return lambda: ran.append(name)

    monkeypatch.setattr(bench, "SECTIONS", {name: recorder(name) for name in bench.SECTIONS})
    bench.main([])
    assert ran == ["classify", "pipeline", "reclassify", "logs"]
    assert [line for line in capsys.readouterr().out.splitlines() if line in bench.SECTIONS] == ran


def test_only_the_given_sections_run() -> None:
    assert bench.sections_of(["page", "classify"]) == ["page", "classify"]


def test_an_unknown_section_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench.sections_of(["speed"])
    assert stopped.value.code == 2
    assert "'speed'" in capsys.readouterr().err


def test_processor_time_of_a_stage_leaves_out_the_stages_within_it() -> None:
    clock = StageClock()
    inner = clock.wrap("extract evidence", lambda: sum(range(300_000)))
    clock.wrap("classify", lambda: [inner() for _ in range(5)])()
    assert clock.seconds["extract evidence"] > 5 * clock.seconds["classify"] > 0
    assert [line.split("  ")[1] for line in table(clock.seconds, 1)] == ["extract evidence", "classify"]


def test_the_stages_name_functions_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped: list[str] = []

    def note(_clock: StageClock, stage: str, function: Callable[..., object]) -> Callable[..., object]:
        wrapped.append(stage)
        return function

    monkeypatch.setattr(StageClock, "wrap", note)
    StageClock().install()
    assert "store" in wrapped
