from pathlib import Path

import pytest

from tests.labs import postgres


def test_a_server_starts_answers_dies_and_comes_back_and_leaves_nothing() -> None:
    with postgres.server() as running:
        running.create("kept")
        running.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2)", "kept")
        running.kill()
        assert not running.running()
        running.start()
        assert running.sql("SELECT n FROM t ORDER BY n", "kept") == "1\n2"
        folder = running.folder
    assert not running.running()
    assert not folder.exists()


def test_the_wheel_s_server_serves_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_DEBIAN", tmp_path)
    with postgres.server() as running:
        assert running.sql("SELECT 1") == "1"
