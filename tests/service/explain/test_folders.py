import json
from pathlib import Path

import pytest

from classifiers.diagnostic_files.streams import kind_of
from service.explain import explanation, log_files, read_logs
from service.explain.file_names import Writer, writers


def streams_of(folder: Path) -> list[tuple[str, int | None, str]]:
    request = explanation.prepare(read_logs.read(log_files.find([str(folder)])))
    return [
        (Path(one.log.name).name, stream.rank, stream.text)
        for one, stream in zip(request.sources, request.streams, strict=True)
    ]


def test_an_empty_log_is_that_of_a_rank_that_printed_nothing(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"slurm-7.{rank}.err").write_text("" if rank == 1 else "step 1 loss 2\n")
    assert [(rank, bool(text)) for _, rank, text in streams_of(tmp_path)] == [(0, True), (1, False), (2, True)]


def test_an_empty_log_is_left_out_where_its_rank_printed_elsewhere_or_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "rank_0.out").write_text("step 1 loss 2\n")
    for name in ("rank_0.err", "launcher.log"):
        (tmp_path / name).touch()
    assert [name for name, _, _ in streams_of(tmp_path)] == ["rank_0.out"]


def test_lists_of_packages_and_notices_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2\n")
    for name in ("requirements.txt", "requirements-dev.txt", "README.txt", "LICENSE.txt", "CMakeLists.txt"):
        (tmp_path / name).write_text("error\n")
    assert [name for name, _, _ in streams_of(tmp_path)] == ["train.log"]


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
        ("[83112.004512] mlx5_core 0000:5e:00.0: Port: 1 Link DOWN\n", "dmesg"),
        ("kern  :err   : [83112.004512] EDAC MC0: 1 UE memory read error\n", "dmesg"),
        ("[Mon Nov 30 09:58:07 2026] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.\n", "dmesg"),
        ("[Mon Nov 30 09:58:07 2026] step 1 loss 2.1\n", None),
        ("[1.52] step 1 loss 2.1\n", None),
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


def test_lines_of_a_kernel_beside_a_log_are_node_events(tmp_path: Path) -> None:
    (tmp_path / "dmesg.txt").write_text("[83112.004512] NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.\n")
    [alone] = explanation.prepare(read_logs.read(log_files.find([str(tmp_path)]))).streams
    assert alone.stream == "stderr", "alone they are all that is known"
    (tmp_path / "train.log").write_text("step 1 loss 2.1\n")
    request = explanation.prepare(read_logs.read(log_files.find([str(tmp_path)])))
    assert {stream.stream for stream in request.streams} == {"stderr", "dmesg"}


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


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["rank_3.log"], [3]),
        (["run/rank.03/stderr"], [3]),
        (["run/1/rank.3/stdout"], [3]),
        (["logs/attempt_0/0/stderr.log", "logs/attempt_0/11/stderr.log"], [0, 11]),
        (["worker-2.log"], [2]),
        (["job-master-0.log", "job-worker-0.log", "job-worker-1.log"], [0, 1, 2]),
        (["llm-worker-1-x7f2k.log"], [1]),
        (["llm-launcher-abcde.log"], [None]),
        (["slurm-123.0.err", "slurm-123.1.err", "slurm-123.2.err"], [0, 1, 2]),
        (["slurm-123-gpu017-0.err", "slurm-123-gpu018-1.err"], [0, 1]),
        (["slurm-123.out"], [None]),
        (["train.log", "train.log.1", "train.log.2"], [None, None, None]),
        (["train-20261120.log"], [None]),
        (["task7.err.gz"], [7]),
        (["global_rank=5.txt"], [5]),
        (["frank_3.log"], [None]),
        (["gpu017.log", "gpu018.log"], [None, None]),
    ],
)
def test_ranks_are_read_from_names_of_files(names: list[str], ranks: list[int | None]) -> None:
    assert [one.rank for one in writers(names)] == ranks


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("slurm-123-gpu017-3.err", Writer(node="gpu017", stream="stderr", job="123")),
        ("logs/node-4/rank_1.out", Writer(rank=1, node="node-4", stream="stdout")),
        ("a100-node12.stdout.gz", Writer(node="a100-node12", stream="stdout")),
        ("dmesg-gpu09.txt", Writer(node="gpu09")),
        ("nvidia-smi-dgx-3.txt", Writer(node="dgx-3")),
        ("train.log", Writer()),
        ("standard input", Writer()),
    ],
)
def test_nodes_streams_and_jobs(name: str, writer: Writer) -> None:
    assert writers([name]) == [writer]


def test_pods_of_an_indexed_job_have_ranks_whatever_their_random_ends() -> None:
    names = ["train-workers-0-0-bb2df.log", "train-workers-0-1-xk2mn.log", "train-workers-0-2-qq9rt.log"]
    assert [one.rank for one in writers(names)] == [0, 1, 2]
