"""The command's edges; what it does on a cluster is in tests/flows/test_kubernetes.py."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from service.__main__ import main
from service.cli.exit_codes import USAGE

HERE = ("watch", "kubernetes", "--cluster", "lab")


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kubeconfig of a cluster that is not there."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "kubeconfig"
    config: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("given", "output"),
    [
        (["--url", "ftp://x"], "--url: expected http"),
        (["--url", "http://x", "--topic", "t"], "expected one of them"),
        (["--token-file", "/none"], "expected --url with it"),
        (["--url", "http://x", "--token-file", "/none"], "--token-file: /none"),
        (["--url", "http://x", "--kubeconfig", "/none"], "no usable Kubernetes configuration"),
    ],
)
def test_a_wrong_option_is_named(given: list[str], output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HERE, *given]) == USAGE
    assert output in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--url", "http://x"], []])
def test_an_unknown_setting_stops_it(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_WATCH_CLUSTER", "lab")
    assert main([*HERE, *given]) == USAGE
    assert "FAULTLINE_WATCH_CLUSTER: expected a known setting" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://[", "http://x:99999", "http://:80", "https://x:port"])
def test_an_address_that_is_none_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HERE, "--url", url]) == USAGE
    assert f"--url: expected http(s)://..., got {url}" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\n", b"flt_one\nflt_two\n", b"flt_\xff", "flt_ä".encode()])
def test_a_file_without_a_token_is_named(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    assert main([*HERE, "--url", "http://x", "--token-file", str(path)]) == USAGE
    assert capsys.readouterr().err == f"faultline: --token-file: {path}: expected one API token and nothing else\n"


def test_a_place_for_metrics_that_is_none_is_named(
    nowhere: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--kubeconfig", nowhere, "--state", str(tmp_path / "state"), "--url", "http://127.0.0.1:1"]
    for wrong in ("here", "127.0.0.1:70000"):
        assert main([*HERE, *where, "--metrics", wrong]) == USAGE
        assert f"--metrics: {wrong} can't be used" in capsys.readouterr().err


def test_without_the_client_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "service.kubernetes.api":
            raise ImportError("No module named 'kubernetes'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main([*HERE, "--url", "http://x"]) == USAGE
    assert "pip install 'faultline[kubernetes]'" in capsys.readouterr().err
