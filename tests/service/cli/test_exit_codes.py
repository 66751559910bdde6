"""Exit codes are the same in every command for the same mistake; docs/commands.md has the table."""

from pathlib import Path

import orjson
import pytest

from service.__main__ import main
from service.cli.commands import COMMANDS
from tests.service.databases import copy_migrated

EVENT = {"cluster": "c", "job_id": "1", "status": "failed", "ended_at": "2026-11-20T10:00:00Z"}


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", copy_migrated(tmp_path / "faultline.sqlite3"))
    monkeypatch.setenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    file.write_bytes(orjson.dumps(EVENT) + b"\n{broken\n")
    return file


def code_of(*arguments: str | Path) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as ended:  # argparse ends the process itself
        return int(ended.code or 0)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_unknown_option_is_a_usage_error(command: str) -> None:
    assert code_of(command, "--no-such-option") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "{missing}"],
        ["replay", "{missing}"],
        ["publish", "{missing}"],
        ["labels", "import", "{missing}"],
        ["train", "--add", "{missing}"],
        ["evaluate", "--cases", "{missing}"],
        ["policy", "check", "{missing}"],
        ["policy", "show", "--policy", "{missing}"],
        ["policy", "replay", "--policy", "{missing}"],
        ["hook", "slurm", "--cluster", "c", "--url", "http://127.0.0.1:1", "--token-file", "{missing}"],
        ["watch", "kubernetes", "--cluster", "c", "--url", "http://127.0.0.1:1", "--token-file", "{missing}"],
    ],
    ids=" ".join,
)
def test_a_missing_input_file_is_a_usage_error_in_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.file")
    assert code_of(*[argument.format(missing=missing) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert "missing.file" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "{events}", "--output", "{nowhere}"],
        ["labels", "export", "--output", "{nowhere}"],
        ["report", "--week", "2026-W40", "--output", "{nowhere}"],
        ["evaluate", "--html", "{nowhere}"],
        ["evaluate", "--json", "{nowhere}"],
    ],
    ids=" ".join,
)
def test_an_output_file_that_cannot_be_written_is_a_usage_error_in_one_line(
    arguments: list[str], events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*[argument.format(events=events, nowhere="/nonexistent/x") for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("faultline: /nonexistent/x: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "--week", "2026-W99"],
        ["report", "--week", "soon"],
        ["policy", "replay", "--policy", "x", "--since", "soon"],
        ["token", "create", "name", "--scope", "everything"],
        ["account", "create", "name", "--role", "king"],
        ["policy", "replay", "--policy", "x", "--since", "999999d"],
        ["reclassify", "--since", "999999d"],
        ["publish", "-", "--rate", "0"],
        ["publish", "-", "--rate", "nan"],
        ["publish", "-", "--rate", "inf"],
        ["publish", "-", "--topic", "two words"],
        ["reclassify", "--rate", "nan"],
        ["reclassify", "--range-size", "0"],
        ["audit", "list", "--limit", "0"],
        ["audit", "list", "--limit", "-1"],
        ["subscription", "end", "99999999999999999999"],
        ["policy", "replay", "--policy", "x", "--workers", "0"],
        ["worker", "--processes", "0"],
        ["worker", "--metrics-port", "70000"],
        ["explain", "x", "--status", "foo"],
        ["serve", "--port", "70000"],
        ["labels", "export", "--golden", "--no-golden"],
        ["evaluate", "--cases", "/dev/null"],
        ["feedback", "7", "--right", "--url", "http://["],
        ["feedback", "7", "--right", "--url", "http://127.0.0.1:port"],
        ["hook", "slurm", "--cluster", "x", "--url", "http://127.0.0.1:port", "--once"],
    ],
    ids=" ".join,
)
def test_a_bad_value_is_a_usage_error(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert code_of(*arguments) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "<Status" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "{events}", "--model", "{nowhere}"],
        ["evaluate", "--model", "{nowhere}"],
        ["model", "show", "{nowhere}"],
        ["model", "list", "{nowhere}"],
        ["replay", "{events}"],
        ["serve", "--port", "0"],
        ["worker"],
    ],
    ids=" ".join,
)
def test_a_missing_model_has_its_own_code(
    arguments: list[str], events: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_MODEL_DIR", "/nonexistent/model")
    assert code_of(*[argument.format(events=events, nowhere="/nonexistent/model") for argument in arguments]) == 4
    assert "/nonexistent/model" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["policy", "explain", "999"],
        ["token", "revoke", "nobody"],
        ["account", "disable", "nobody"],
        ["report", "--week", "2090-W01", "--publish"],
        ["publish", "{events}", "--topic", "t"],
    ],
    ids=" ".join,
)
def test_a_refusal_at_run_time_is_code_1(arguments: list[str], events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.messaging.kafka.producer.BOOTSTRAP_MS", 300)  # there is no broker
    assert code_of(*[argument.format(events=events) for argument in arguments]) == 1


@pytest.mark.parametrize(
    "arguments",
    [["automation", "status"], ["token", "list"], ["audit", "list"], ["audit", "verify"], ["account", "list"]],
    ids=" ".join,
)
@pytest.mark.parametrize("option", [["--json"], ["--format", "json"]], ids=" ".join)
def test_lists_are_printed_as_json(arguments: list[str], option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("token", "create", "ci", "--scope", "read") == 0
    assert code_of("account", "list") == 0
    capsys.readouterr()
    assert code_of(*arguments, *option) == 0
    shown = orjson.loads(capsys.readouterr().out)
    expected = {"automation": "stopped", "token": "ci", "audit": "token/ci"}
    if arguments == ["audit", "verify"]:
        assert shown["intact"] is True
        assert shown["entries"] == 1
    elif arguments[0] in expected:
        assert expected[arguments[0]] in orjson.dumps(shown).decode()
    else:
        assert shown == []


@pytest.mark.parametrize("command", ["serve", "replay"])
def test_a_log_storage_that_cannot_be_used_stops_the_start(
    command: str, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_LOG_STORE_URL", f"file://{tmp_path}/absent")
    arguments = (command, events) if command == "replay" else (command, "--port", "0")
    assert code_of(*arguments) == 2
    assert "FAULTLINE_LOG_STORE_URL" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["file", "file/model"])
def test_a_model_folder_that_cannot_be_written_is_found_before_training(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("classifiers.model.training.train", lambda *_, **__: pytest.fail("it was trained"))
    monkeypatch.setattr("classifiers.composition.training_cases.packaged", lambda _: [])
    (tmp_path / "file").touch()
    assert code_of("train", "--output", tmp_path / name) == 2
    assert str(tmp_path / name) in capsys.readouterr().err
