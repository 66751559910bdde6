"""Lines of several processes in one log are attributed, whatever prefix a launcher writes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_prefixes import detect_style, sample_lines

WORDS = (
    "loading shards",
    "step 10 loss 2.1",
    "warming up",
    "step 11 loss 2.0",
    "checkpoint written",
    "step 12 loss 1.9",
)
PREFIXES: dict[str, Callable[[int], str]] = {
    "mpiexec -l": lambda rank: f"[{rank}] ",
    "srun --label": lambda rank: f"{rank}: ",
    "srun --label, padded": lambda rank: f"{rank:3d}: ",
    "Open MPI 4": lambda rank: f"[1,{rank}]<stderr>:",
    "Open MPI 5": lambda rank: f"[prterun-gpu7-4711@1,{rank}]<stdout>: ",
    "horovodrun": lambda rank: f"[{rank}]<stderr>:",
    "horovodrun, with times": lambda rank: f"Fri Nov 20 03:41:57 2026[{rank}]<stdout>:",
    "torch": lambda rank: f"[rank{rank}]: ",
    "stern": lambda rank: f"bert-worker-{rank} trainer ",
    "kubectl --prefix": lambda rank: f"[pod/bert-worker-{rank}/trainer] ",
    "indexed job": lambda rank: f"[pod/bert-{rank}-x7k2p/trainer] ",
    "compose": lambda rank: f"worker-{rank}  | ",
    "round": lambda rank: f"({rank}) ",
    "times first": lambda rank: f"2026-11-20 03:41:57,120 [{rank}] ",
}


def text_of(prefix: Callable[[int], str], ranks: list[int]) -> str:
    return "".join(f"{prefix(rank)}{words} {rank}\n" for words in WORDS for rank in ranks)


def attribution_of(text: str) -> LineAttribution:
    return LineAttribution(text, None, shared=True, labelled=False)


@pytest.mark.parametrize("name", PREFIXES)
def test_the_prefix_of_each_launcher_gives_rank_and_message(name: str) -> None:
    prefix = PREFIXES[name]
    attribution = attribution_of(text_of(prefix, [0, 1, 2, 3]))
    line = f"{prefix(2)}KeyError: 'y'"
    header = attribution.parse_header(line)
    assert header.rank == 2
    assert line[header.message_start :] == "KeyError: 'y'"


@given(
    st.sampled_from(sorted(set(PREFIXES) - {"torch", "Open MPI 4", "Open MPI 5", "horovodrun"})),
    st.integers(2, 80),
    st.data(),
)
def test_ranks_of_any_world_size_are_found(name: str, world: int, data: st.DataObject) -> None:
    prefix = PREFIXES[name]
    attribution = attribution_of(text_of(prefix, list(range(world))))
    rank = data.draw(st.integers(0, world - 1))
    assert attribution.parse_header(prefix(rank) + "Traceback (most recent call last):").rank == rank


def test_numbers_that_do_not_come_back_are_no_ranks() -> None:
    steps = "".join(f"[{step}] loss {9 / (step + 1):.3f}\n" for step in range(40))
    assert attribution_of(steps).parse_header("[7] loss 1.1").rank is None
    assert detect_style(sample_lines("".join(f"{step}: loss\n" for step in range(300)))).name == ""


def test_hosts_are_no_ranks_and_the_rank_after_a_host_is_read() -> None:
    text = "".join(f"dgx-{host}: [rank{host}]: {words}\n" for words in WORDS for host in (17, 31))
    header = attribution_of(text).parse_header("dgx-31: [rank5]: ValueError: x")
    assert (header.rank, header.host) == (5, "dgx-31")
    assert attribution_of(text).parse_header("dgx-31: ValueError: x").rank is None


def test_hosts_are_read_below_a_banner_of_the_job_script() -> None:
    banner = "".join(f"== setting {number} of the job ==\n" for number in range(9))
    lines = "".join(f"r{number % 2}i3n7: [rank{number % 4}]: step {number} of a long run\n" for number in range(300))
    header = attribution_of(banner + lines).parse_header("r1i3n7: [rank3]: KeyError: 'y'")
    assert (header.host, header.rank) == ("r1i3n7", 3)


def test_workers_count_from_one_when_there_is_a_master() -> None:
    text = "".join(
        f"[pod/t5-{pod}/pytorch] {words}\n" for words in WORDS for pod in ("master-0", "worker-0", "worker-1")
    )
    assert attribution_of(text).parse_header("[pod/t5-worker-1/pytorch] KeyError: 1").rank == 2
    assert attribution_of(text).parse_header("[pod/t5-master-0/pytorch] KeyError: 1").rank == 0


def test_local_ranks_of_a_second_node_become_ranks_by_its_report() -> None:
    text = (
        "[default0]:loading\n[default1]:loading\n[default0]:step 1\n[default1]:step 1\n"
        "  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 4711)\n"
    )
    assert attribution_of(text).parse_header("[default1]:KeyError: 'y'").rank == 5


NCCL = "{host}:{pid}:9 [{device}] NCCL INFO comm 0x1 rank {rank} nranks {size} cudaDev {device} - Init COMPLETE\n"


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([(0, 8, 32)], 13),
        ([(0, 8, 32), (3, 11, 32)], 13),
        ([(0, 8, 32), (3, 1, 4)], 13),  # a group of its own numbers its members anew
        ([(0, 8, 32), (3, 12, 32)], None),  # the ranks do not follow the devices
    ],
)
def test_the_device_that_nccl_names_gives_the_rank(ranks: list[tuple[int, int, int]], expected: int | None) -> None:
    begin = "".join(NCCL.format(host="fit-1", pid=40 + d, device=d, rank=r, size=n) for d, r, n in ranks)
    attribution = attribution_of(begin + NCCL.format(host="fit-2", pid=77, device=0, rank=16, size=32))
    assert attribution.parse_header("fit-1:45:9 [5] misc.cc:12 NCCL WARN Cuda failure 'unknown error'").rank == expected
    assert attribution.parse_header("fit-2:78:9 [5] misc.cc:12 NCCL WARN Cuda failure 'unknown error'").rank == 21


def test_ray_and_exit_reports_give_the_rank_of_a_process() -> None:
    ray = "(RayTrainWorker pid=811, ip=10.0.0.7) Setting up process group for: env:// [rank=3, world_size=4]\n"
    assert attribution_of(ray).parse_header("(RayTrainWorker pid=811, ip=10.0.0.7) KeyError: 'y'").rank == 3
    report = "  rank      : 6 (local_rank: 2)\n  exitcode  : -9 (pid: 9021)\n"
    assert attribution_of(report).rank_of_process("9021") == 6
    assert attribution_of(report).rank_of_process("902") is None


@pytest.mark.parametrize(
    "prefix", ["[rank {}] ", "rank={} ", '{{"rank": {}, "text": ', "[trainer.{}] ", "(rank {}/4) "]
)
def test_the_rank_in_a_logger_header_is_read(prefix: str) -> None:
    text = "".join(f"{prefix.format(rank)}{words}\n" for words in WORDS for rank in range(4))
    line = prefix.format(3) + "loss is not finite"
    attribution = attribution_of(text)
    assert attribution.infer_rank(line, attribution.parse_header(line)) == 3


def test_an_unmarked_line_is_likely_of_the_rank_that_stopped() -> None:
    before = "".join(f"[rank {rank}] step {step}\n" for step in range(9) for rank in (0, 1, 2))
    after = "".join(f"[rank {rank}] step {step}\n" for step in range(9, 14) for rank in (0, 2))
    trace = "Traceback (most recent call last):\nKeyError: 'y'\n"
    assert attribution_of(before + trace + after).rank_near(len(before)) == 1


@given(st.text(max_size=2_000), st.text(max_size=200))
def test_any_text_can_be_attributed(text: str, line: str) -> None:
    attribution = attribution_of(text)
    header = attribution.parse_header(line)
    assert 0 <= header.message_start <= len(line)
    attribution.infer_rank(line, header)
    attribution.rank_near(len(text) // 2)
    assert all(rank >= 0 for rank in attribution.known_ranks)


@pytest.mark.parametrize(
    ("head", "rank"),
    [
        ("world size 2, backend nccl\n", 1),
        ("world size 4, backend nccl\n", None),  # as many processes run on another node
        ("", None),
    ],
)
def test_local_ranks_are_ranks_where_one_node_has_all(head: str, rank: int | None) -> None:
    text = f"[default0]:{head or 'loading'}\n[default1]:loading\n[default0]:step 1\n[default1]:step 1\n"
    header = attribution_of(text).parse_header("[default1]:KeyError: 'y'")
    assert (header.rank, header.is_local) == ((rank, False) if rank is not None else (1, True))
