from pathlib import Path

from service.explain import explanation, log_files, read_logs


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
