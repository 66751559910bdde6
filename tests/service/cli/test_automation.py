"""`faultline automation`: one command stops everything, and says how things stand."""

from pathlib import Path

import pytest

from service.__main__ import main
from tests.service.databases import copy_migrated


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = copy_migrated(tmp_path / "store.sqlite3")
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", url)
    return url


@pytest.mark.usefixtures("database")
def test_stop_and_start_and_what_they_leave(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automation", "status"]) == 0
    assert capsys.readouterr().out == "on\n"
    assert main(["automation", "stop", "--reason", "storage work"]) == 0
    assert "hooks get no requests" in capsys.readouterr().out
    assert main(["automation", "status"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("stopped by ")
    assert shown.rstrip().endswith(": storage work")
    assert main(["automation", "start"]) == 0
    capsys.readouterr()
    assert main(["automation", "status"]) == 0
    assert capsys.readouterr().out.startswith("on by ")


def test_a_database_without_a_schema_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", f"sqlite:///{tmp_path}/none.sqlite3")
    assert main(["automation", "stop"]) == 2
