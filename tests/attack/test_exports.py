"""Exports open in a spreadsheet without running anything, and no file that is read back takes the memory."""

import csv
import errno
import io
import json
import os
import stat
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import zstandard

from classifiers.data import labelled_cases
from service.__main__ import main
from service.cli.files import opened_output
from service.contracts.event import MAX_EVENT_BYTES
from service.feedback import label_export
from tests.attack.server import set_environment
from tests.service.databases import copy_migrated
from tests.service.web.world import event, lines, log, make_world

BEFORE = ("", " ", "\ufeff", "a;", "a; ", "a;'", 'a;"', "a\t", "a\r\n", ";;")
SIGNS = "=+-@\uff1d"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula(tmp_path: Path, separator: str) -> None:
    world = make_world(tmp_path)
    users = [f"{before}{sign}WEBSERVICE(1)" for before, sign in product(BEFORE, SIGNS)]
    with world.client() as client:
        sent = [event(str(number), user=user, name="a;=WEBSERVICE(2)") for number, user in enumerate(users, 1)]
        assert client.post("/api/v1/events", content=lines(*sent)).json()["accepted"] == len(sent)
        text = client.get("/api/v1/failures/export.csv").text
    world.store.close()
    cells = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]
    assert sum("WEBSERVICE(1)" in cell for cell in cells) == len(users)
    assert [cell for cell in cells if cell.lstrip(' \ufeff"').startswith(tuple(SIGNS)) and "WEB" in cell] == []


def test_what_is_printed_to_a_terminal_has_no_commands_for_it(tmp_path: Path) -> None:
    """Such as `curl ... | less -r`; in JSON, they are a matter of the program that reads it."""
    commands = "\x1b]0;title\x07 \x9b31m \u202egnp.exe\u2066"
    world = make_world(tmp_path)
    with world.client() as client:
        sent = event("1", message=commands, user=f"ana{commands}", logs=[log(f"NVRM: Xid 79 {commands}\n")])
        assert client.post("/api/v1/events", content=lines(sent)).json()["accepted"] == 1
        for path in ("/api/v1/failures/export.csv", "/failures/1/logs/1/0"):
            text = client.get(path).text
            assert "gnp.exe" in text
            assert not [one for one in text if not one.isprintable() and one not in "\r\n"], path
    world.store.close()


def test_an_export_that_fails_leaves_the_file_before_it(tmp_path: Path) -> None:
    """A full disk, or a database that went away, left half of the new one in place of the old one."""
    file = tmp_path / "labels.jsonl"
    file.write_bytes(b"yesterday\n")
    file.chmod(0o640)
    with pytest.raises(OSError, match="No space"):
        half_written(file)
    assert file.read_bytes() == b"yesterday\n"
    with opened_output(file) as out:
        out.write(b"today\n")
    assert file.read_bytes() == b"today\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


def half_written(file: Path) -> None:
    with opened_output(file) as out:
        out.write(b"half of a li")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_output_that_is_a_link_or_a_device_stays_one(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    with opened_output(link) as out:
        out.write(b"today\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"today\n"
    with opened_output(Path(os.devnull)) as out:
        out.write(b"x")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_logs_of_jobs_are_exported_for_the_own_user_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An export holds the logs of all labelled jobs; with the usual umask, everybody of the machine could read them."""
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path)
    file = tmp_path / "labels.jsonl"
    assert main(["labels", "export", "--output", str(file)]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_line_without_an_end_is_not_read_into_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The file was read at once: gigabytes, or a device until the memory was full."""
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path)
    file = tmp_path / "labels.jsonl"
    with file.open("wb") as made:
        made.write(b"{}\n")
        made.truncate(MAX_EVENT_BYTES + 10)
        made.seek(0, os.SEEK_END)
        made.write(b"\n[]\n")
    assert main(["labels", "import", str(file)]) == 3
    said = capsys.readouterr().err
    assert f"{file}:2: a line of more than {MAX_EVENT_BYTES:,} bytes" in said
    assert "3 wrong" in said


FLAT = {"id": "c", "log": "RuntimeError: x", "side": "user", "cause": "USER.1", "retry": "futile"}
WRONG: dict[str, dict[str, object]] = {
    "event": {"event": ["x"]},
    "event.status": {"event": {"status": []}},
    "event.n_nodes": {"event": {"n_nodes": 10**12}},
    "side": {"side": ["user"]},
    "cause_ok": {"cause_ok": 5},
    "retry_ok": {"retry_ok": [{}]},
    "root_rank": {"root_rank": "0"},
    "root_line": {"root_line": 7},
    "case": {"log": "x", "event": {"a": json.loads("[" * 300 + "]" * 300)}},
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_case_to_measure_is_named_and_takes_no_memory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, field: str
) -> None:
    """A number of nodes took a terabyte; other values ended the command with a trace."""
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(FLAT)}\n{json.dumps(FLAT | WRONG[field])}\n")
    assert main(["evaluate", "--cases", str(file)]) == 2
    assert f"cases.jsonl:2: {field}: expected" in capsys.readouterr().err


def hostile(folder: Path, content: str) -> Path:
    """A file of cases: one line without an end, or few bytes that unpack to many lines."""
    file = folder / ("cases.jsonl" if content == "line" else "cases.jsonl.zst")
    file.write_bytes(b"x" * 2_000 if content == "line" else zstandard.compress(b"\n" * 20_000))
    return file


@pytest.mark.parametrize("content", ["line", "bomb"])
def test_a_file_of_cases_is_read_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str
) -> None:
    monkeypatch.setattr(labelled_cases, "LINE_BYTES", 1_000)
    monkeypatch.setattr(labelled_cases, "FILE_BYTES", 10_000)
    file = hostile(tmp_path, content)
    expected = "line: expected at most 1,000 bytes" if content == "line" else "file: expected at most 10,000 bytes"
    answers = ["evaluate", "--cases", str(cases := tmp_path / "flat.jsonl"), "--second-reader-answers", str(file)]
    cases.write_text(json.dumps(FLAT))
    for command in (
        ["evaluate", "--cases", str(file)],
        ["evaluate", "--adaptation", str(file), str(cases)],
        ["train", "--add", str(file), "--output", str(tmp_path / "model")],
        answers,
    ):
        assert main(command) == 2, command
        assert expected in capsys.readouterr().err


def test_an_import_keeps_no_logs_of_its_lines(tmp_path: Path) -> None:
    """All lines are counted before the first is imported: a file of a gigabyte was in memory as a whole."""
    world = make_world(tmp_path)
    tail = "step 1 of 1\n" * 80_000
    labels = {"side": "system", "cause": "SYS.5", "category": None, "symptom": None, "retry": None}

    def cases() -> Iterator[tuple[str, dict[str, object]]]:
        for number in range(30):
            ids = dict.fromkeys(("id", "group", "kind"), str(number))
            failed = event(str(number), logs=[log(f"{number}\n{tail}")])
            yield str(number), {**ids, "event": failed, "labels": labels, "provenance": {"origin": "operator"}}

    tracemalloc.start()
    try:
        done = label_export.import_labels(world.store, world.services.feedback, cases(), actor="ana")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    world.store.close()
    assert len(done.elsewhere) == 30
    assert peak < 10 * len(tail), "of 30 logs of this size"
