"""A configuration that would open the service stops it, and the message names the setting."""

import os
from pathlib import Path

import pytest
import yaml

from service.__main__ import main
from service.cli.processes import serve, worker
from tests.attack.server import ROOT, set_environment
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


def test_a_file_of_a_secret_without_an_end_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It would be read until the memory is full."""
    set_environment(monkeypatch, tmp_path, AUDIT_KEY_FILE="/dev/zero")
    assert main(["serve", "--port", "0"]) == 2
    assert "FAULTLINE_AUDIT_KEY_FILE: expected a readable file" in capsys.readouterr().err


PIPES = ["AUDIT_KEY_FILE", "POLICY_FILE", "DELIVERY_FILE", "KAFKA_SSL_CAFILE", "KAFKA_SSL_CERTFILE", "AUDIT_HEAD_FILE"]


@pytest.mark.parametrize("setting", PIPES)
def test_a_pipe_without_a_writer_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, setting: str
) -> None:
    """The start waited for a writer for ever, without a message."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path, **{"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", setting: str(pipe)})
    assert main(["serve", "--port", "0"]) == 2
    assert f"FAULTLINE_{setting}" in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["POLICY_FILE", "DELIVERY_FILE"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("device", "not a regular file"),
        ("large", "expected at most 1,048,576 bytes"),
        ("latin-1", "not TOML: not UTF-8 (at byte 12)"),
    ],
)
def test_a_file_of_settings_without_an_end_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    setting: str,
    kind: str,
    message: str,
) -> None:
    """It was read until the memory was full."""
    copy_migrated(tmp_path / "attacked.sqlite3")
    file = Path("/dev/zero") if kind == "device" else tmp_path / "file.toml"
    if kind == "large":
        with file.open("wb") as made:
            made.truncate(64 << 30)
    elif kind == "latin-1":
        file.write_bytes(b'version = "\xe4"')
    set_environment(monkeypatch, tmp_path, **{setting: str(file)})
    assert main(["serve", "--port", "0"]) == 2
    assert f"FAULTLINE_{setting}: {file}: {message}" in capsys.readouterr().err


def certificate(folder: Path, kind: str) -> str:
    """A file that holds no certificate, a folder, or nothing at all."""
    made = folder / kind
    if kind == "folder":
        made.mkdir()
    elif kind == "text":
        made.write_text("no certificate")
    return str(made)


WRONG_FORMS = [
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka:"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092,other"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka:0"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka:70000"),
    ("KAFKA_BOOTSTRAP_SERVERS", "http://kafka:9092"),
    ("KAFKA_BOOTSTRAP_SERVERS", "ana:hunter22@kafka:9092"),
    ("KAFKA_BOOTSTRAP_SERVERS", "::1:9092"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka 9092"),
    ("KAFKA_TOPICS", "jobs/all"),
    ("KAFKA_TOPICS", "jobs all=orion"),
    ("KAFKA_TOPICS", ".."),
    ("KAFKA_TOPICS", "x" * 250),
    ("NODE_EVENT_TOPIC", "node:events"),
    ("DEAD_LETTER_TOPIC", "dead letters"),
    ("DEAD_LETTER_TOPIC", "."),
    ("KAFKA_SSL_CAFILE", "/nowhere/ca.pem"),
    ("KAFKA_SSL_CERTFILE", "/nowhere/cert.pem"),
    ("KAFKA_SSL_KEYFILE", "/nowhere/key.pem"),
    ("LOG_ROOTS", "/"),
    ("LOG_ROOTS", "//"),
    ("LOG_ROOTS", "/tmp/.."),
    ("LOG_ROOTS", "file:///"),
    ("LOG_ROOTS", "/nowhere/logs"),
    ("LOG_ROOTS", "/dev/null"),
    ("LOG_NETWORKS", "0.0.0.0/0"),
    ("LOG_NETWORKS", "logs.example"),
    ("AUDIT_HEAD_FILE", "/nowhere/heads"),
    ("AUDIT_HEAD_FILE", "/"),
]


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["worker"]])
@pytest.mark.parametrize(("name", "value"), WRONG_FORMS)
def test_a_setting_that_cannot_be_used_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    name: str,
    value: str,
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    # No broker answers there; that alone must not stop the start, and is not reached here.
    set_environment(monkeypatch, tmp_path, **{"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", name: value})
    monkeypatch.setattr(serve, "create_app", started)
    monkeypatch.setattr(worker, "_run_members", started)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"FAULTLINE_{name}" in error
    assert "hunter22" not in error


class Started(Exception):
    """A process that has passed its checks."""


def started(*given: object) -> None:
    del given
    raise Started


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["worker"]])
@pytest.mark.parametrize("kind", ["folder", "text", "nothing"])
def test_a_file_without_certificates_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    kind: str,
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    file = certificate(tmp_path, kind)
    set_environment(monkeypatch, tmp_path, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1", KAFKA_SSL_CAFILE=file)
    monkeypatch.setattr(serve, "create_app", started)
    monkeypatch.setattr(worker, "_run_members", started)
    assert main(command) == 2
    assert "FAULTLINE_KAFKA_SSL_CAFILE" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["worker"]])
def test_a_broker_that_is_down_does_not_stop_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(
        monkeypatch,
        tmp_path,
        KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1,[::1]:9092",
        LOG_ROOTS=f"{tmp_path},https://logs.example/jobs",
        AUDIT_HEAD_FILE=str(tmp_path / "heads"),
    )
    monkeypatch.setattr(serve, "create_app", started)
    monkeypatch.setattr(worker, "_run_members", started)
    with pytest.raises(Started):
        main(command)


# Pod Security Standards of Kubernetes, profile "restricted": what a pod may not ask for. The API server of the lab
# enforces the profile for these manifests and for the chart, too (tests/flows/test_chart.py).
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
OF_THE_HOST = {"hostNetwork", "hostPID", "hostIPC", "hostAliases", "hostUsers"}


def test_the_containers_of_the_hooks_get_no_more_than_the_restricted_profile_allows() -> None:
    objects = list(yaml.safe_load_all((ROOT / "deploy/hooks/kubernetes.yaml").read_text(encoding="utf-8")))
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "StatefulSet"]
    assert len(pods) == 2
    for pod in pods:
        own = pod["securityContext"]
        assert not OF_THE_HOST & set(pod)
        assert own["runAsNonRoot"] is True
        assert own["runAsUser"] > 0
        assert own["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"sysctls", "seLinuxOptions", "appArmorProfile", "windowsOptions"} & set(own)
        assert all(set(volume) - {"name"} <= VOLUMES for volume in pod["volumes"])
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert not [port for port in container.get("ports", ()) if "hostPort" in port]
            assert "memory" in container["resources"]["limits"]
