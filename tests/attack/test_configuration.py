"""A configuration that would open the service stops it, and the message names the setting."""

from pathlib import Path

import pytest

from tests.attack.server import faultline


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
def test_a_setting_that_opens_the_service_stops_the_start(tmp_path: Path, name: str, value: str) -> None:
    assert faultline(tmp_path, "db", "upgrade").returncode == 0
    stopped = faultline(tmp_path, "serve", "--port", "0", **{name: value})
    assert stopped.returncode == 2, stopped.stderr
    assert f"FAULTLINE_{name}" in stopped.stderr or "there is no API token" in stopped.stderr
    assert "Traceback" not in stopped.stderr


def test_an_empty_file_of_a_secret_stops_the_start(tmp_path: Path) -> None:
    empty = tmp_path / "secret"
    empty.touch()
    stopped = faultline(tmp_path, "serve", "--port", "0", PROXY_SECRET_FILE=str(empty), ROLES="sre=admin")
    assert stopped.returncode == 2
    assert "FAULTLINE_PROXY_SECRET_FILE" in stopped.stderr
