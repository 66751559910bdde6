"""Nothing that a job, a file or a person named reaches the terminal as a control character or a line of its own."""

import ast
import io
import logging
import re
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

import service.cli
from service.__main__ import main
from service.cli import output
from service.cli.commands import COMMANDS
from service.reports.records import NewSubscription
from service.settings import default_model_dir
from service.statistics.records import Scope
from tests.service.databases import migrated_file
from tests.service.web.world import event, make_world

HOSTILE = "x\x1b[2J\x1b]0;t\x07\x9b31m\u202egpj\u200b\x7f\u2028y\r\nfaultline: all is well\tz"
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e]|^faultline: all is well", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with hostile names, and hostile files."""
    (tmp_path / "store.sqlite3").write_bytes(migrated_file().read_bytes())
    world = make_world(tmp_path)
    with world.client() as client:
        sent = event("1", name=HOSTILE, user=HOSTILE, team=HOSTILE, queue=HOSTILE, nodes=[HOSTILE], message=HOSTILE)
        client.post("/api/v1/events", content=orjson.dumps(sent))
        client.post("/api/v1/incidents", json={"cluster": "orion", "kind": "node", "value": "gpu\u202e\x9b"})
    with world.store.unit_of_work() as work:
        work.accounts.create("ana", "owner", users=(HOSTILE,), teams=(HOSTILE,))
        work.tokens.create("\x1b\x9b\u202e token", ["read"], teams=["\x1b\x9b\u202e\r\n"])
        hostile = NewSubscription("x\x1b\u202e", "y\x9b", Scope(HOSTILE, HOSTILE))
        work.report_subscriptions.add(hostile, actor=HOSTILE, last_week="2026-W46")
        work.audit_log.append(HOSTILE, "x", HOSTILE, after={HOSTILE: HOSTILE})
    world.store.close()
    (tmp_path / f"{HOSTILE}.log").write_text(f"{HOSTILE}\nRuntimeError: {HOSTILE}\n", encoding="utf-8", newline="")
    (tmp_path / f"{HOSTILE}.jsonl").write_bytes(
        b"\n".join([orjson.dumps(event("9", message=HOSTILE, cluster=HOSTILE)), orjson.dumps({HOSTILE: 1}), b"{"])
    )
    (tmp_path / f"{HOSTILE}.toml").write_text('version = "\\u001b\\u009b\\u202e"\n', encoding="utf-8")
    signatures = tmp_path / "signatures"
    signatures.mkdir()
    (signatures / f"{HOSTILE}.toml").write_text('[[signature]]\nid = "a\\u001b"\n', encoding="utf-8")
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", f"sqlite:///{tmp_path}/store.sqlite3")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"another fine password 17\n")))
    return tmp_path


def commands(folder: Path) -> dict[str, list[list[str]]]:
    """Each command with hostile input. Those without an entry of their own fail on a hostile argument."""
    lines, log, toml = (str(folder / f"{HOSTILE}.{kind}") for kind in ("jsonl", "log", "toml"))
    token = [f"--token-file={folder}/{HOSTILE}", "--cluster", HOSTILE, "--url", "http://127.0.0.1:1"]
    return {
        "explain": [[log], [log, "--json"], [log, "--color=always"]] if _trained() else [],
        "classify": [[lines], [HOSTILE]] if _trained() else [],
        "replay": [[lines], [HOSTILE]] if _trained() else [],
        "publish": [[HOSTILE]],
        "feedback": [["--right", HOSTILE, *token]],
        "labels": [["export"], ["import", lines]],
        "policy": [["check", toml], ["check", HOSTILE], ["show"], ["explain", "1"]],
        "signatures": [["check", str(folder / "signatures")], ["test", log], ["list", "--json"]],
        "report": [["--format", "markdown"], ["--json"], ["--week", HOSTILE], ["--team", HOSTILE]],
        "subscription": [["list"], ["list", "--json"], ["add", HOSTILE, "--user", HOSTILE], ["end", HOSTILE]],
        "hook": [["slurm", *token], ["kubernetes", *token]],
        "watch": [["kubernetes", *token]],
        "automation": [["stop", "--reason", HOSTILE], ["status"], ["status", "--json"], ["start"]],
        "config": [["show"]],
        "token": [["list"], ["list", "--json"], ["create", HOSTILE, "--scope", "read"], ["revoke", HOSTILE]],
        "account": [["list"], ["list", "--json"], ["create", HOSTILE, "--role", "viewer"], ["disable", HOSTILE]],
        "audit": [["list"], ["list", "--json"], ["list", "--subject", HOSTILE], ["verify"]],
        "model": [["list", str(folder)], ["show", str(folder / HOSTILE)]],
        "evaluate": [["--cases", lines]],
        "train": [["--add", HOSTILE]],
        "db": [["check"]],
    }


def _trained() -> bool:
    return (default_model_dir() / "manifest.json").exists()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_command_prints_a_control_character(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = ""
    for arguments in [*commands(folder).get(command, []), [f"--unknown={HOSTILE}"]]:
        with suppress(SystemExit):
            main([command, *arguments])
        captured = capfd.readouterr()
        shown = captured.out + captured.err
        assert shown, arguments
        printed += re.sub(r"\x1b\[[0-9;]*m", "", shown) if "--color=always" in arguments else shown
        found = ACTIVE.search(printed)
        assert found is None, f"{arguments}: {printed[max(0, found.start() - 80) : found.end() + 20]!r}"
    assert command in {"completion", "serve", "worker"} or "\\u202e" in printed or "\\x1b" in printed


def test_log_lines_and_tracebacks_are_escaped() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(output.EscapingFormatter(output.LOG_FORMAT))
    try:
        int("x")
    except ValueError as error:
        about = (ValueError, ValueError(HOSTILE), error.__traceback__)
        record = logging.makeLogRecord({"msg": "job %s", "args": (HOSTILE,), "exc_info": about})
    handler.emit(record)
    assert "Traceback" in written.getvalue()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", written.getvalue())


def test_logs_and_errors_have_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(output.EscapingFormatter(output.LOG_FORMAT))
    hidden = [f"flt_{number}" + "aB3-_" * 8 + "xy" for number in range(3)]  # tokens of the service itself
    error = ValueError(f"postgresql://ana:{hidden[0]}@db/runs refused")
    about = (ValueError, error, None)
    handler.emit(logging.makeLogRecord({"msg": "login of %s", "args": (hidden[1],), "exc_info": about}))
    output.problem(f"FAULTLINE_KAFKA_BROKERS: got {hidden[2]}")
    shown = written.getvalue() + capsys.readouterr().err
    assert "login of [redacted]" in shown
    assert not [one for one in hidden if one in shown]


def test_json_keeps_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    output.json_document({HOSTILE: [HOSTILE]})
    shown = capsys.readouterr().out
    assert orjson.loads(shown) == {HOSTILE: [HOSTILE]}
    assert not ACTIVE.search(shown)
    assert orjson.loads(output.json_line(HOSTILE)) == HOSTILE


def test_all_commands_print_by_one_module() -> None:
    """`print` is refused by ruff (T201); this finds direct writes."""
    folder = Path(service.cli.__file__).parent
    for path in [*folder.rglob("*.py"), folder.parent / "__main__.py"]:
        if path.name in {"output.py", "files.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert name != "print", path
            assert not re.match(r"sys\.(stdout|stderr)\.", name) or name.endswith(".isatty"), f"{path}: {name}"
