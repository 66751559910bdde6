"""A configuration that would open the service stops it, and the message names the setting."""

from pathlib import Path

import pytest

from service.__main__ import main
from tests.attack.server import set_environment
from tests.service.databases import copy_migrated


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROXY_SECRET", ""),
        ("PROXY_SECRET", "changeme"),
        ("ROLES", "sre=root"),
        ("HOST", "*"),
        ("HOST", ""),
        ("HOST", "0.0.0.0"),  # without any token
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
    ],
)
def test_a_setting_that_opens_the_service_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, value: str
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path, **{name: value})
    assert main(["serve", "--port", "0"]) == 2
    error = capsys.readouterr().err
    assert f"FAULTLINE_{name}" in error or "there is no API token" in error


def test_an_empty_file_of_a_secret_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    empty = tmp_path / "secret"
    empty.touch()
    set_environment(monkeypatch, tmp_path, PROXY_SECRET_FILE=str(empty), ROLES="sre=admin")
    assert main(["serve", "--port", "0"]) == 2
    assert "FAULTLINE_PROXY_SECRET_FILE" in capsys.readouterr().err
