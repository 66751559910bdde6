from pathlib import Path

import pytest

from service.__main__ import main


def test_upgrade_then_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", f"sqlite:///{tmp_path}/f.sqlite3")
    assert main(["db", "check"]) == 2
    assert "faultline db upgrade" in capsys.readouterr().err
    assert main(["db", "upgrade"]) == 0
    assert "created, now at revision" in capsys.readouterr().out
    assert main(["db", "upgrade"]) == 0
    assert "already at revision" in capsys.readouterr().out
    assert main(["db", "check"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_a_database_that_is_down_or_wrong_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", "postgresql://ana:geheim@127.0.0.1:1/f")
    assert main(["db", "upgrade"]) == 1
    down = capsys.readouterr().err
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", "oracle://ana:geheim@h/f")
    assert main(["db", "upgrade"]) == 2
    wrong = capsys.readouterr().err
    assert "does not answer" in down
    assert "FAULTLINE_DATABASE_URL" in wrong
    for output in (down, wrong):
        assert output.count("\n") == 1
        assert "geheim" not in output
