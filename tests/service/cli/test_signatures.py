from pathlib import Path

import orjson
import pytest

from service.__main__ import main
from tests.service.signatures.entries import LICENCE, QUOTA, write


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["signatures", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_check_counts_entries_and_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_SIGNATURES_DIR", str(write(tmp_path, QUOTA, LICENCE)))
    assert run(capsys, "check") == (0, f"{tmp_path}: 2 signatures in 1 file: no problem\n", "")
    write(tmp_path, QUOTA.replace("label", "lable"))
    code, out, err = run(capsys, "check")
    assert (code, out) == (2, "")
    assert (
        err
        == "faultline: site.toml: entry 1 (site.scratch-quota): label: this field is required; unknown field 'lable'\n"
    )
    monkeypatch.delenv("FAULTLINE_SIGNATURES_DIR")
    assert "set FAULTLINE_SIGNATURES_DIR" in run(capsys, "check")[2]


def test_list_shows_own_entries_and_on_request_the_packaged_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, QUOTA)
    _, out, _ = run(capsys, "list", "--dir", str(tmp_path))
    assert out.split() == [
        "site.scratch-quota", "own", "initiating", "USER.2", "Quota", "of", "/scratch", "exceeded",
    ]  # fmt: skip
    _, out, _ = run(capsys, "list", "--packaged", "--json")
    assert {one["origin"] for one in orjson.loads(out)} == {"packaged"}


def test_test_prints_the_lines_that_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "own", QUOTA)
    log = tmp_path / "train.log"
    log.write_text("step 1\nKeyError: 'x'\nscratch: quota exceeded for user ana\n")
    code, out, err = run(capsys, "test", str(log), "--dir", str(folder))
    assert (code, out) == (0, f"{log}:3: site.scratch-quota: scratch: quota exceeded for user ana\n")
    assert err == "1 match of 1 signature\n"
    _, out, _ = run(capsys, "test", str(log), "--dir", str(folder), "--packaged", "--json")
    found = orjson.loads(out)
    assert {(one["line"], one["own"]) for one in found} == {(2, False), (3, False), (3, True)}
