import bz2
import gzip
import io
import lzma
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from classifiers.model import artifact
from service.__main__ import main
from tests.classifiers.conftest import small_model
from tests.service.signatures.entries import QUOTA, write

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"  # a token's shape, nobody's token
KEY_ERROR = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr_5'\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model") / "model"
    artifact.save(small_model(), where)
    return where


class Explain:
    """Runs the command with the small model."""

    def __init__(self, model: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self._model = model
        self._capture = capsysbinary
        self.error = ""

    def code(self, *arguments: Any) -> int:
        """The exit code; `error` holds what was printed on standard error."""
        code = main(["explain", *map(str, arguments), "--model", str(self._model)])
        self.error = self._capture.readouterr().err.decode()
        return code

    def text(self, *arguments: Any) -> str:
        """What is printed, on success."""
        assert main(["explain", *map(str, arguments), "--model", str(self._model)]) == 0
        return self._capture.readouterr().out.decode()

    def json(self, *arguments: Any) -> dict[str, Any]:
        """The object that is printed with `--json`."""
        found: dict[str, Any] = orjson.loads(self.text(*arguments, "--json"))
        return found


@pytest.fixture
def explain(model: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Explain:
    return Explain(model, capsysbinary)


def log(path: Path, text: str | bytes = KEY_ERROR) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_verdict_the_line_and_the_advice_are_printed(explain: Explain, tmp_path: Path) -> None:
    shown = explain.text(log(tmp_path / "train.log"))
    assert "User side: Buggy Code (USER.1)" in shown
    assert "train.log:3" in shown
    assert "KeyError: 'lr_5'" in shown
    assert "Do not resubmit unchanged." in shown
    assert "What to do  1." in shown
    assert "\x1b" not in shown


def test_json_holds_the_verdict_and_the_places_of_its_lines(explain: Explain, tmp_path: Path) -> None:
    found = explain.json(log(tmp_path / "train.log"))
    assert found["schema"] == "explanation/1"
    assert orjson.loads(explain.text(tmp_path / "train.log", "--format", "json")) == found
    assert found["verdict"]["cause"] == "USER.1"
    first = found["lines"][0]
    assert (first["line"], first["role"], first["text"]) == (3, "initiating", "KeyError: 'lr_5'")
    assert first["file"].endswith("train.log")
    assert found["assumed"]["status"] == "failed"


def test_the_verdict_is_that_of_the_same_event(
    explain: Explain, model: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = explain.json(log(tmp_path / "train.log"), "--status", "failed", "--exit-code", "1")["verdict"]
    event = {
        "cluster": "c", "job_id": "1", "status": "failed", "exit_code": 1, "ended_at": "2026-11-20T10:00:00Z",
        "logs": [{"stream": "stderr", "tail": KEY_ERROR}],
    }  # fmt: skip
    source = log(tmp_path / "event.json", orjson.dumps(event))
    assert main(["classify", str(source), "--model", str(model)]) == 0
    classified = orjson.loads(capsysbinary.readouterr().out)
    for name in ("side", "cause", "category", "confidence", "evidence", "decision", "fingerprint", "mitigations"):
        assert found[name] == classified[name], name


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".xz", lambda content: lzma.compress(content[:9]) + bytes(8) + lzma.compress(content[9:]) + bytes(4)),
        (".zst", zstandard.ZstdCompressor().compress),
        ("", gzip.compress),
    ],
)
def test_compressed_logs_are_read(explain: Explain, tmp_path: Path, suffix: str, pack: Any) -> None:
    found = explain.json(log(tmp_path / f"train.log{suffix}", pack(KEY_ERROR.encode())))
    assert found["lines"][0]["text"] == "KeyError: 'lr_5'"


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_of_a_compressed_log_that_ends_early_the_rest_is_read(
    explain: Explain, tmp_path: Path, suffix: str, pack: Any
) -> None:
    before, after = secrets.token_hex(41_500), secrets.token_hex(3_000)
    whole = pack(f"{before}\n{KEY_ERROR}{after}".encode())
    found = explain.json(log(tmp_path / f"train.log{suffix}", whole[:-1_500]))
    assert found["lines"][0]["text"] == "KeyError: 'lr_5'"
    assert "its compressed data ends early" in found["logs"][0]["note"]


def test_a_compressed_log_does_not_choose_how_much_memory_it_takes(explain: Explain, tmp_path: Path) -> None:
    """An attached file of 170 kB took 1.1 GB."""
    window = {"id": lzma.FILTER_LZMA2, "dict_size": 256 << 20, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3}
    large = log(tmp_path / "train.log.xz", lzma.compress(KEY_ERROR.encode(), filters=[window]))
    assert explain.code(large) == 2
    assert "Memory usage limit exceeded" in explain.error


def test_standard_input_is_read(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(KEY_ERROR.encode())))
    assert explain.json("-")["lines"][0]["file"] == "standard input"


def test_a_folder_is_searched_for_logs(explain: Explain, tmp_path: Path) -> None:
    log(tmp_path / "run" / "rank_0.log", "step 1 loss 2.1\n" * 20)
    log(tmp_path / "run" / "rank_1.log")
    log(tmp_path / "run" / "model.bin", bytes(range(256)) * 40)
    found = explain.json(tmp_path / "run")
    assert [(one["file"].rsplit("/", 1)[-1], one["rank"]) for one in found["logs"]] == [
        ("rank_0.log", 0),
        ("rank_1.log", 1),
    ]
    assert found["verdict"]["suspect"]["rank"] == 1
    assert found["lines"][0]["file"].endswith("rank_1.log")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "the log is empty"),
        (b"  \n\n", "the log is empty"),
        (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 8, "not a text file"),
        (gzip.compress(b"x" * 10_000, mtime=0)[:12] + b"\xff" * 30, "damaged"),
    ],
)
def test_an_unusable_log_is_one_line_and_a_usage_error(
    explain: Explain, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "job.log"
    if content is not None:
        path.write_bytes(content)
    assert explain.code(path) == 2
    assert message in explain.error
    assert "job.log" in explain.error
    assert explain.error.count("\n") == 1


def test_what_is_no_text_in_a_folder_of_logs_is_left_out(explain: Explain, tmp_path: Path) -> None:
    log(tmp_path / "job.log")
    log(tmp_path / "a.out", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 8)
    found = explain.json(tmp_path)
    assert [one["file"] for one in found["logs"]] == [str(tmp_path / "job.log")]
    assert found["skipped"] == [f"{tmp_path}/a.out: left out, not a text file"]
    assert "a.out: left out, not a text file" in " ".join(explain.text(tmp_path).split())
    (tmp_path / "job.log").unlink()
    assert explain.code(tmp_path) == 2
    assert "a.out: not a text file" in explain.error


def test_a_name_in_another_encoding_is_printed_with_a_replacement(explain: Explain, tmp_path: Path) -> None:
    path = log(Path(os.fsdecode(os.fsencode(tmp_path / "caf") + b"\xe9.log")))
    for named in (path, tmp_path):
        assert [one["file"] for one in explain.json(named)["logs"]] == [f"{tmp_path}/caf\ufffd.log"]
        assert "caf\ufffd.log" in explain.text(named)


def test_secrets_are_not_printed(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", f"ValueError: login with {SECRET} failed\n")
    assert SECRET not in explain.text(path)
    assert SECRET not in orjson.dumps(explain.json(path)).decode()
    assert "[redacted]" in explain.text(path)


def test_control_characters_of_logs_and_names_are_made_visible(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "a\x1b]0;x\x07.log", "ValueError: \u202edrow\x9b31m\n")
    shown = explain.text(path)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    assert "[U+202E]" in shown


def test_colours_only_where_they_are_wanted(explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path / "train.log")
    assert "\x1b[" in explain.text(path, "--color", "always")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.chdir(tmp_path)
    rows = explain.text("train.log").splitlines()
    assert max(map(len, rows)) <= 60


@pytest.mark.slow
def test_a_file_too_large_to_be_read_whole_is_reported(explain: Explain, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.write(b"starting\n")
        for _ in range(90):
            file.write(b"step 1 loss 2.125 lr 0.1 throughput 12345 tokens/s rank 0 epoch 1\n" * 16_000)
        file.write(b"one\n" + KEY_ERROR.encode() + b"bye\n")
    found = explain.json(path)
    assert "first and last" in found["logs"][0]["note"]
    assert (found["lines"][0]["line"], found["lines"][0]["line_from_end"]) == (None, 2)
    assert "train.log:-2" in explain.text(path)


def test_lines_of_a_long_log_have_their_numbers(explain: Explain, tmp_path: Path) -> None:
    text = "start\n" + "step 1 loss 2.125 lr 0.1 throughput 12345 tokens per second\n" * 100_000 + KEY_ERROR
    found = explain.json(log(tmp_path / "train.log", text))
    assert found["lines"][0]["line"] == 100_004
    assert "its beginning" in found["logs"][0]["note"]
    assert explain.json(log(tmp_path / "train.log.gz", gzip.compress(text.encode())))["lines"][0]["line"] == 100_004


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings_are_read(explain: Explain, tmp_path: Path, encoding: str) -> None:
    path = log(tmp_path / "train.log", KEY_ERROR.replace("\n", "\r\n").encode(encoding))
    assert explain.json(path)["lines"][0]["text"] == "KeyError: 'lr_5'"


def test_a_log_with_a_hole_is_read(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", b"step 1\nste" + bytes(4096) + b"\n" + KEY_ERROR.encode())
    assert explain.json(path)["lines"][0]["text"] == "KeyError: 'lr_5'"


def test_the_advice_names_the_node_that_began_it_although_only_the_log_names_nodes(
    explain: Explain, tmp_path: Path
) -> None:
    path = log(
        tmp_path / "slurm-4713.out",
        "step 200 loss 1.9\nsrun: error: Node failure on gpu17\nslurmstepd: error: *** JOB 4713 ON gpu16 CANCELLED AT "
        "2026-11-29T03:12:44 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
    )
    found = explain.json(path)["verdict"]
    assert (found["suspect"]["node"], found["exclude_nodes"]) == ("gpu17", ["gpu17"])


def test_node_events_are_evidence(explain: Explain, tmp_path: Path) -> None:
    events = log(
        tmp_path / "dmesg.txt",
        "[Fri Nov 20 03:41:52 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n",
    )
    path = log(tmp_path / "train.log", "RuntimeError: CUDA error: unspecified launch failure\n")
    found = explain.json(path, "--node-events", events)
    assert any(line["stream"] == "node" for line in found["verdict"]["evidence"])


@pytest.mark.parametrize("text", ["step 1 loss 2\nall done\n", "WARNING: lr is low\n"])
def test_a_log_without_a_failure_is_not_explained_away(explain: Explain, tmp_path: Path, text: str) -> None:
    assert "these logs show no failure" in explain.text(log(tmp_path / "train.log", text))


def test_how_the_job_ended_is_asked_for_only_where_it_is_not_given(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", "step 1 loss 2\nall done\n")
    assert "say how it ended" in explain.text(path)
    given = explain.text(path, "--exit-code", 0)
    assert "add the log of its standard error" in given
    assert "say how it ended" not in given


def test_a_test_that_failed_is_a_failure_and_none_that_failed_is_not(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "go.log", "    cache_test.go:31: got 3 entries, want 2\n--- FAIL: TestCache (0.00s)\nFAIL\n")
    assert "these logs show no failure" not in explain.text(path)
    assert "these logs show no failure" in explain.text(log(tmp_path / "ok.log", "# PASS: 12\n# FAIL:  0\nall done\n"))


def test_a_log_in_another_language_shows_the_failure_that_its_exit_code_tells(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", "cp: '/a.txt' \u3092 stat \u3067\u304d\u307e\u305b\u3093\n")
    assert "these logs show no failure" in explain.text(path)
    assert "these logs show no failure" not in explain.text(path, "--exit-code", 1)


@pytest.mark.parametrize("library", ["/opt/env/lib/python3.11/site-packages/torch", "/opt/pytorch/pytorch/torch"])
def test_the_place_where_an_exception_was_raised_is_that_of_the_own_code(
    explain: Explain, tmp_path: Path, library: str
) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 88, in step\n    loss = criterion(out, y)\n'
        f'  File "{library}/nn/functional.py", line 3029, in cross_entropy\n'
        "    return torch._C._nn.cross_entropy_loss(input)\n"
        "KeyError: 'lr_5'\n"
    )
    prefixed = "".join(f"1: {line}\n0: step 3 loss 2.0\n" for line in text.splitlines())
    for name, content in (("train.log", text), ("slurm-7.out", prefixed)):
        found = explain.json(log(tmp_path / name, content))
        assert found["lines"][0]["raised_at"] == "/home/u/train.py:88 in step", name


def test_the_end_of_the_job_is_described(explain: Explain, tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", KEY_ERROR + "srun: error: gpu1: task 3: Exited with exit code 7\n")
    assert "Job end     failed, exit code 7 (from the log)" in explain.text(path)
    assert "Job end     failed (assumed)" in explain.text(log(tmp_path / "plain.log"))
    given = explain.text(path, "--status", "timeout", "--exit-code", "9")
    assert "Job end     timeout, exit code 9\n" in given
    assert explain.json(path, "--exit-code", "9")["assumed"] == {"status": "failed", "scheduler": "slurm"}


def test_logs_of_earlier_attempts_are_left_out(explain: Explain, tmp_path: Path) -> None:
    for attempt in (0, 1):
        for rank in (0, 1):
            log(tmp_path / "run" / f"attempt_{attempt}" / str(rank) / "stderr.log")
    found = explain.json(tmp_path / "run")
    assert {one["file"].split("/")[-3] for one in found["logs"]} == {"attempt_1"}
    assert found["skipped"] == ["2 logs of earlier attempts (attempt_1 is the last)"]


def test_lines_that_a_good_run_printed_too_are_not_the_cause(explain: Explain, tmp_path: Path) -> None:
    noise = "ERROR decoder: cannot identify the image file number 17\n"
    good = log(tmp_path / "good.log", f"{noise}all steps are done\n")
    failing = log(tmp_path / "failing.log", f"{noise}{KEY_ERROR}")
    output = explain.text(failing, "--good", good)
    assert "Not new     1 line that the good run printed too, set aside" in output
    lines = [line["text"] for line in explain.json(failing, "--good", good)["lines"] if line["role"] == "initiating"]
    assert lines == ["KeyError: 'lr_5'"]


@pytest.mark.parametrize("case", ["dead_rank", "missing_rank", "mismatched_operations", "mismatched_sizes"])
def test_a_folder_of_flight_recorder_dumps_names_the_rank(explain: Explain, case: str) -> None:
    folder = Path(__file__).parents[2] / "data" / "flight_recorder" / case
    found = explain.json(folder)
    first = found["lines"][0]
    assert (first["file"], first["role"], first["rank"]) == ("Flight Recorder", "initiating", 2)
    assert found["verdict"]["suspect"]["rank"] == 2
    assert found["shows_failure"]


def test_an_error_file_of_torchrun_is_named(explain: Explain, tmp_path: Path) -> None:
    message = {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": KEY_ERROR.replace("lr_5", "lr")}}
    log(tmp_path / "attempt_0" / "0" / "stderr.log", "step 1 loss 2.1\n")
    error_file = log(tmp_path / "attempt_0" / "1" / "error.json", orjson.dumps({"message": message}))
    first = explain.json(tmp_path)["lines"][0]
    assert (first["file"], first["rank"], first["line"]) == (str(error_file), 1, None)


def test_an_own_signature_is_named_with_its_label_and_action(
    explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_SIGNATURES_DIR", str(write(tmp_path / "own", QUOTA)))
    shown = " ".join(explain.text(log(tmp_path / "train.log", "scratch: quota exceeded for user ana\n")).split())
    assert "1. Quota of /scratch exceeded. Delete old checkpoints in /scratch, or ask" in shown
