"""A changed audit log is found by `faultline audit verify`."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from service.__main__ import main
from service.clock import SystemClock
from service.db.session import Store
from service.people.audit_heads import AuditHeadExport, AuditHeads
from tests.attack.server import set_environment
from tests.service.databases import copy_migrated, engine_of

KEY = "k" * 40


def test_a_command_without_the_key_does_not_break_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its entry counted as altered for ever."""
    url = copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path)
    assert main(["token", "create", "first", "--purpose", "read"]) == 0, "there is no key yet"
    with closing(Store(url, audit_key=KEY.encode())) as store, store.unit_of_work() as work:
        work.audit_log.append("ana", "token.made", "token/a")
    for command in (["token", "create", "b", "--purpose", "read"], ["model", "rollback"], ["account", "disable", "x"]):
        assert main(command) == 2
        assert "FAULTLINE_AUDIT_KEY: expected the key of the service" in capsys.readouterr().err
    monkeypatch.setenv("FAULTLINE_AUDIT_KEY", KEY)
    assert main(["token", "create", "c", "--purpose", "read"]) == 0
    assert main(["audit", "verify"]) == 0


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("DELETE FROM audit_log WHERE id > 1", None),
        ("DELETE FROM audit_log", KEY),
        ("UPDATE audit_log SET who = 'nobody' WHERE id = 2", KEY),
        ("SELECT 1", None),
    ],
)
def test_a_changed_audit_log_is_found(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    new_database: Callable[[], str],
    statement: str,
    key: str | None,
) -> None:
    url, heads = new_database(), tmp_path / "heads"
    secret = None if key is None else key.encode()
    with closing(Store(url, audit_key=secret)) as store:
        for name in ("a", "b", "c"):
            with store.unit_of_work() as work:
                work.audit_log.append("ana", "token.made", f"token/{name}")
        AuditHeadExport(store, AuditHeads(heads, secret), SystemClock())()
        with engine_of(store).begin() as connection:
            connection.exec_driver_sql(statement)
    given = {"DATABASE_URL": url, "AUDIT_HEAD_FILE": str(heads), **({} if key is None else {"AUDIT_KEY": key})}
    set_environment(monkeypatch, tmp_path, **given)
    code = main(["audit", "verify"])
    error = capsys.readouterr().err
    assert code == (0 if statement == "SELECT 1" else 1), error
    assert ("audit log: " in error) == (statement != "SELECT 1")


def test_of_heads_that_cannot_be_read_none_agree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path, AUDIT_HEAD_FILE=str(tmp_path / "heads"))
    assert main(["audit", "verify"]) == 1
    printed = capsys.readouterr()
    assert "exported heads: 0 of 0 agree" in printed.out
    assert "cannot be read" in printed.err
