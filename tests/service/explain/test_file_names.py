import pytest

from service.explain.file_names import Writer, writers


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
def test_ranks(names: list[str], ranks: list[int | None]) -> None:
    assert [one.rank for one in writers(names)] == ranks


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("slurm-123-gpu017-3.err", Writer(node="gpu017", stream="stderr", job="123")),
        ("logs/node-4/rank_1.out", Writer(rank=1, node="node-4", stream="stdout")),
        ("a100-node12.stdout.gz", Writer(node="a100-node12", stream="stdout")),
        ("train.log", Writer()),
        ("standard input", Writer()),
    ],
)
def test_nodes_streams_and_jobs(name: str, writer: Writer) -> None:
    assert writers([name]) == [writer]


def test_pods_of_an_indexed_job_have_ranks_whatever_their_random_ends() -> None:
    names = ["train-workers-0-0-bb2df.log", "train-workers-0-1-xk2mn.log", "train-workers-0-2-qq9rt.log"]
    assert [one.rank for one in writers(names)] == [0, 1, 2]
