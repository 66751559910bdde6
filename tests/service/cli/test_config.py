"""`faultline config show`: what is in force, without secrets."""

import pytest

from service.__main__ import main


def test_settings_in_force_are_shown_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", "postgresql://ana:hunter2@db/faultline")
    monkeypatch.setenv("FAULTLINE_KAFKA_TOPICS", "jobs,slurm=orion")
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "FAULTLINE_KAFKA_TOPICS=jobs,slurm=orion" in shown
    assert "FAULTLINE_DATABASE_URL=postgresql://***@db/faultline" in shown
