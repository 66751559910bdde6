import json
from pathlib import Path

import pytest

from service.explain import explanation, log_files, read_logs
from service.explain.diagnostic_kinds import kind_of

DUMPS = Path(__file__).parents[2] / "data" / "flight_recorder"
ERROR_FILE = {"message": {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": "KeyError: 'lr'\n"}}}


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (json.dumps(ERROR_FILE), "torchrun_error"),
        ("\n==============NVSMI LOG==============\n\nTimestamp : Sat\n", "nvidia_smi"),
        ("JobID|JobName|State|ExitCode\n7|train|FAILED|1:0\n", "sacct"),
        ("NCCL version 2.24.3 compiled with CUDA 12.8\n\nJob summary\n===========\n", "nccl_ras"),
        ('{"nccl_version": "2.28.7", "communicators": []}', "nccl_ras"),
        ("Process 41: python train.py\nPython v3.12.3 (/usr/bin/python3.12)\n", "py_spy"),
        ('{"message": "step 1", "level": "info"}\n{"message": "step 2"}\n', None),
        ("NCCL version 2.24.3+cuda12.8\nstep 1 loss 2.1\n", None),
        ("Process 41: python train.py died\n", None),
        ("\x80 a log in another encoding", None),
        ("", None),
    ],
)
def test_a_diagnostic_file_is_known_by_its_beginning(start: str, kind: str | None) -> None:
    assert kind_of(start.encode("latin-1")) == kind


@pytest.mark.parametrize("path", sorted(DUMPS.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_both_forms_of_a_dump_are_known(path: Path) -> None:
    assert kind_of(path.read_bytes()[: 16 * 1024]) == "flight_recorder"


def test_diagnostic_files_of_a_folder_are_read_with_its_logs(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.1\n")
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    (tmp_path / "nccl_trace_rank_3").write_bytes((DUMPS / "dead_rank" / "rank_3.pickle").read_bytes())
    error_file = tmp_path / "attempt_0" / "1" / "error.json"
    error_file.parent.mkdir(parents=True)
    error_file.write_text(json.dumps(ERROR_FILE))
    request = explanation.prepare(read_logs.read(log_files.find([str(tmp_path)])))
    found = {(stream.stream, stream.rank) for stream in request.streams}
    assert found == {("stderr", None), ("flight_recorder", 3), ("torchrun_error", 1)}


def test_ranks_of_dumps_say_nothing_of_the_ranks_of_logs(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"slurm-7.{rank}.err").write_text("step 1 loss 2.1\n")
        dump = DUMPS / "missing_rank" / f"rank_{rank}.json"
        (tmp_path / f"nccl_trace_rank_{rank}.json").write_bytes(dump.read_bytes())
    request = explanation.prepare(read_logs.read(log_files.find([str(tmp_path)])))
    assert [(stream.stream, stream.rank) for stream in request.streams] == [
        ("stderr", 0), ("stderr", 1), ("flight_recorder", 0), ("flight_recorder", 1),
    ]  # fmt: skip


def test_an_unreadable_dump_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.1\n")
    (tmp_path / "nccl_trace_rank_0").write_bytes(b"\x80\x02}X\x09\x00\x00\x00pg_config")
    request = explanation.prepare(read_logs.read(log_files.find([str(tmp_path)])))
    assert [bool(stream.missing) for stream in request.streams] == [False, True]
