import json
import os
from pathlib import Path
from threading import Thread

import pytest

from service import compose
from service.__main__ import main
from service.cli.exit_codes import SOME_LINES_BAD, USAGE
from service.db.session import Store
from tests.service.databases import copy_migrated


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    url = copy_migrated(tmp_path / "replay.sqlite3")
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", url)
    monkeypatch.setattr(compose.ProcessServices, "diagnoser", None)  # jobs that succeeded ask for no verdict
    return Store(url)


def event(job_id: str) -> str:
    return json.dumps({"cluster": "orion", "job_id": job_id, "status": "succeeded", "ended_at": "2026-11-20T03:41:57Z"})


def test_stores_what_is_good_keeps_what_is_bad_and_says_so(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([event("a"), "{", event("b"), event("a")]))
    assert main(["replay", str(path)]) == SOME_LINES_BAD
    assert capsys.readouterr().out == "2 accepted, 1 duplicate, 0 conflict, 0 skipped, 1 bad\n"
    with store.reading() as reading:
        [letter] = reading.dead_letters.page().items
    assert letter.place == f"replay {path}:2"
    store.close()


def test_replaying_twice_stores_nothing_twice(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(event(f"j{number}") for number in range(700)))
    assert main(["replay", str(path)]) == 0
    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "0 accepted, 700 duplicate, 0 conflict, 0 skipped, 0 bad"
    store.close()


def test_a_file_that_is_not_there_is_named(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "absent.jsonl")]) == USAGE
    assert "absent.jsonl: No such file" in capsys.readouterr().err
    store.close()


def test_a_named_pipe_is_read_once(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events"
    os.mkfifo(path)
    writer = Thread(target=path.write_text, args=(event("a"),), daemon=True)
    writer.start()
    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out == "1 accepted, 0 duplicate, 0 conflict, 0 skipped, 0 bad\n"
    writer.join(10)
    store.close()
