from pathlib import Path
from typing import Any

import orjson
import pytest

from classifiers.model import artifact
from service.__main__ import main
from tests.classifiers.conftest import KINDS, labelled, small_model

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"  # a token's shape, nobody's token


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model") / "model"
    artifact.save(small_model(), where)
    return where


def event(job_id: str, tail: str, **more: Any) -> bytes:
    return orjson.dumps(
        {
            "schema": "job-completion/1",
            "cluster": "c",
            "job_id": job_id,
            "status": "failed",
            "ended_at": "2026-11-20T10:00:00Z",
            "logs": [{"rank": 0, "stream": "stderr", "tail": tail}],
            **more,
        }
    )


def classify(folder: Path, tmp_path: Path, *lines: bytes) -> tuple[int, list[dict[str, Any]]]:
    source, out = tmp_path / "events.jsonl", tmp_path / "verdicts.jsonl"
    source.write_bytes(b"\n".join(lines) + b"\n")
    code = main(["classify", str(source), "--output", str(out), "--model", str(folder)])
    return code, [orjson.loads(line) for line in out.read_bytes().splitlines()]


def test_a_verdict_a_line_in_their_order(folder: Path, tmp_path: Path) -> None:
    code, answers = classify(
        folder,
        tmp_path,
        event("1", "KeyError: 'lr_5'"),
        event("2", "", status="succeeded"),
        event("ns/pod/3", "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", nodes=["n1"]),
    )
    assert code == 0
    assert [one["job_id"] for one in answers] == ["1", "2", "ns/pod/3"]
    assert answers[1] == {"job_id": "2", "skipped": "succeeded"}
    first, last = answers[0], answers[2]
    assert (first["side"], first["cause"], first["category"], first["resubmit"]) == ("user", "USER.1", "GC.3", False)
    assert (last["side"], last["cause"], last["resubmit"]) == ("hardware", "HW.GPU.1", True)
    assert {"event_id", "cluster", "attempt", "mitigations", "decision", "evidence", "fingerprint", "rules"} <= set(
        first
    )


def test_bad_lines_are_reported_and_the_rest_is_classified(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answers = classify(
        folder,
        tmp_path,
        b"{nonsense",
        event("1", "KeyError: 'lr_5'"),
        event("2", "x", status="broken"),
        event("3", "KeyError: 'lr_5'", exit_code=-9),
    )
    assert code == 3
    assert answers[0]["line"] == 1
    assert set(answers[0]["error"]) == {"field", "expected", "got"}
    assert answers[1]["cause"] == "USER.1"
    assert (answers[2]["line"], answers[2]["error"]["field"]) == (3, "status")
    assert answers[3]["cause"] == "USER.1"
    assert "2 of 4 lines could not be read" in capsys.readouterr().err


def test_a_log_without_text_is_missing_for_the_reason_that_the_event_gives(folder: Path, tmp_path: Path) -> None:
    logs = [
        {"rank": 0, "stream": "stderr", "uri": "/logs/0.err"},
        {"rank": 1, "stream": "stderr", "uri": "/logs/1.err", "missing": "the container wrote nothing"},
        {"rank": 2, "stream": "stderr"},
        {"rank": 3, "stream": "stderr", "tail": None, "missing": f"refused for token {SECRET}"},
    ]
    _, [answer] = classify(folder, tmp_path, event("1", "", logs=logs))
    first, second, third, fourth = answer["missing"]
    assert first == "log of rank 0 (stderr): given by its address only, which this command does not read"
    assert second == "log of rank 1 (stderr): the container wrote nothing"
    assert third == "log of rank 2 (stderr): neither a tail nor a uri is given"
    assert fourth.startswith("log of rank 3 (stderr): refused for token ")
    assert SECRET not in fourth


def test_no_secret_of_a_log_gets_out(folder: Path, tmp_path: Path) -> None:
    line = f"ValueError: token {SECRET} was refused"
    _, [answer] = classify(folder, tmp_path, event("1", line, node_events=[{"text": f"bad {SECRET}"}]))
    assert SECRET not in orjson.dumps(answer).decode()
    assert "[redacted]" in orjson.dumps(answer).decode()


def test_colours_and_progress_bars_do_not_change_a_verdict(folder: Path, tmp_path: Path) -> None:
    bars = "\r".join(f" {n}%|###   | {n}/100 [00:0{n}<01:00, 3.1it/s]" for n in range(1, 9))
    plain, noisy = "KeyError: 'lr_5'", f"{bars}\r\x1b[1;31mKeyError: 'lr_5'\x1b[0m\r\n"
    _, (one, other) = classify(folder, tmp_path, event("1", plain), event("2", noisy))
    assert one["evidence"][0]["text"] == other["evidence"][0]["text"] == plain
    assert (one["cause"], one["category"]) == (other["cause"], other["category"])


def test_without_a_model_the_message_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "events.jsonl"
    source.write_bytes(event("1", "x"))
    assert main(["classify", str(source), "--model", str(tmp_path / "none")]) == 4
    assert "no model there" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_wrong_usage(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["classify", str(tmp_path / "nowhere"), "--model", str(folder)]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_models_are_listed_and_shown(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["model", "list", str(folder.parent)]) == 0
    assert "faultline-text 2" in capsys.readouterr().out
    assert main(["model", "show", str(folder)]) == 0
    assert '"cases": 70' in capsys.readouterr().out
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "manifest.json").write_text("{")
    (folder.parent / "broken" / "weights.npz").write_bytes(b"")
    (folder.parent / "compiled").mkdir()
    (folder.parent / "compiled" / "manifest.json").write_text('{"modules": []}')
    assert main(["model", "list", str(folder.parent)]) == 0
    listed = capsys.readouterr().out
    assert "broken: not usable" in listed
    assert "compiled" not in listed
    assert main(["model", "show", str(folder.parent / "broken")]) == 4
    assert main(["model", "list", str(tmp_path)]) == 4


def test_the_packaged_model_is_shown_by_the_name_that_compare_takes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_MODEL_DIR", str(folder))
    assert main(["model", "show", "packaged"]) == 0
    assert '"cases": 70' in capsys.readouterr().out


def test_evaluation_of_a_file_prints_figures_and_writes_the_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.jsonl"
    flat = {
        "id": "c1",
        "log": "KeyError: 'lr_5'",
        "side": "user",
        "cause": "USER.1",
        "category": "GC.3",
        "retry": "futile",
    }
    cases.write_bytes(orjson.dumps(flat) + b"\n" + orjson.dumps({**flat, "id": "c2"}))
    report = tmp_path / "report.html"
    assert main(["evaluate", "--cases", str(cases), "--html", str(report), "--model", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("signatures alone", "always buggy code", "most frequent class"))
    assert "is right on the side in 1.000 of these cases" in shown
    assert "few cases" in shown
    assert report.read_text().startswith("<!doctype html>")
    cases.write_text("{")
    assert main(["evaluate", "--cases", str(cases), "--model", str(folder)]) == 2
    assert "cases.jsonl:1" in capsys.readouterr().err


@pytest.mark.slow
def test_training_leaves_a_model_with_own_cases_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [labelled(kind, number) for kind in KINDS for number in range(6)]
    monkeypatch.setattr("service.cli.classifier.train.training_cases.packaged", lambda *_: few)
    own = tmp_path / "own.jsonl"
    case = labelled("ecc", 50, origin="operator")
    line = {
        "id": "own-1",
        "group": "own",
        "kind": "own",
        "event": dict(case.event),
        "labels": {axis: case.labels.best[axis] for axis in case.labels.best},
        "provenance": {"origin": "operator", "who": "sre"},
    }
    own.write_bytes(orjson.dumps(line))
    out = tmp_path / "model"
    assert main(["train", "--add", str(own), "--output", str(out)]) == 0
    assert artifact.manifest_of(out)["cases"] == len(few) + 1
    assert "right on kinds held out" in capsys.readouterr().out
    own.write_bytes(orjson.dumps({**line, "labels": {**line["labels"], "cause": "USER.77"}}))  # type: ignore[dict-item]
    assert main(["train", "--add", str(own), "--output", str(out)]) == 2
    assert "own.jsonl:1: labels.cause" in capsys.readouterr().err
