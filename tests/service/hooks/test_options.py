from pathlib import Path

import pytest

from service import settings
from service.errors import ConfigurationError
from service.hooks.options import read


def test_flags_win_over_the_environment() -> None:
    environ = {"FAULTLINE_HOOK_CLUSTER": "orion", "FAULTLINE_HOOK_POLL_S": "3", "FAULTLINE_DATABASE_URL": "other's"}
    options = read({"poll_s": "5", "url": None}, environ)
    assert (options.cluster, options.poll_s, options.url) == ("orion", 5.0, "http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, "FAULTLINE_HOOK_CLUSTER"),
        ({"FAULTLINE_HOOK_POLS": "3"}, "FAULTLINE_HOOK_POLS"),
        ({"FAULTLINE_HOOK_POLL_S": "often"}, "FAULTLINE_HOOK_POLL_S"),
        ({"FAULTLINE_HOOK_URL": "ftp://x"}, "FAULTLINE_HOOK_URL"),
        ({"FAULTLINE_HOOK_URL": "https://user:pass@x"}, "without user, password"),
        ({"FAULTLINE_HOOK_URL": "http://faultline.example", "FAULTLINE_HOOK_TOKEN_FILE": "/t"}, "https"),
        ({"FAULTLINE_HOOK_LISTEN": "127.0.0.1:8099"}, "webhook_secret_file"),
        ({"FAULTLINE_HOOK_LISTEN": "8099", "FAULTLINE_HOOK_WEBHOOK_SECRET_FILE": "/s"}, "ADDRESS:PORT"),
        ({"FAULTLINE_HOOK_SLURMRESTD": "unix:relative.sock"}, "unix:/PATH"),
        ({"FAULTLINE_HOOK_SLURMRESTD": "http://127.0.0.1:6820"}, "slurmrestd_token"),
        (
            {"FAULTLINE_HOOK_SLURMRESTD": "http://head:6820", "FAULTLINE_HOOK_SLURMRESTD_TOKEN": "file:/t"},
            "--allow-http",
        ),
        ({"FAULTLINE_HOOK_SLURMRESTD_TOKEN": "eyJpass@"}, "FAULTLINE_HOOK_SLURMRESTD_TOKEN"),
        ({"FAULTLINE_HOOK_LEASE_S": "1"}, "FAULTLINE_HOOK_LEASE_S"),
    ],
)
def test_what_is_wrong_is_named(environ: dict[str, str], named: str) -> None:
    cluster = {"FAULTLINE_HOOK_CLUSTER": "orion"} if environ else {}
    with pytest.raises(ConfigurationError) as caught:
        read({}, cluster | environ)
    assert named in caught.value.detail
    assert "pass@" not in caught.value.detail


def test_a_file_that_is_not_a_certificate_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        with pytest.raises(ConfigurationError, match="ca_file"):
            read({"cluster": "c", "ca_file": str(name)}, {}).tls()


def test_an_address_in_brackets() -> None:
    options = read({"cluster": "c", "listen": "[::1]:8099", "webhook_secret_file": "/s"}, {})
    assert options.listens_on() == ("::1", 8099)


def test_settings_of_the_service_do_not_change_those_of_a_hook() -> None:
    assert settings.read({"FAULTLINE_HOOK_CLUSTER": "orion"}).port == 8080
