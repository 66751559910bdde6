"""Lines of several processes in one text find their writer, however a launcher marked them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction.line_attribution import Speakers, process_of
from classifiers.extraction.line_prefixes import learn, sample

WORDS = (
    "loading shards",
    "step 10 loss 2.1",
    "warming up",
    "step 11 loss 2.0",
    "checkpoint written",
    "step 12 loss 1.9",
)
MARKS: dict[str, Callable[[int], str]] = {
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


def text_of(mark: Callable[[int], str], ranks: list[int]) -> str:
    return "".join(f"{mark(rank)}{words} {rank}\n" for words in WORDS for rank in ranks)


def speakers(text: str) -> Speakers:
    return Speakers(text, None, mixed=True, labelled=False)


@pytest.mark.parametrize("name", MARKS)
def test_each_launcher_s_mark_tells_rank_and_words(name: str) -> None:
    mark = MARKS[name]
    said = speakers(text_of(mark, [0, 1, 2, 3]))
    line = f"{mark(2)}KeyError: 'y'"
    head = said.head(line)
    assert head.rank == 2
    assert line[head.body :] == "KeyError: 'y'"


@given(
    st.sampled_from(sorted(set(MARKS) - {"torch", "Open MPI 4", "Open MPI 5", "horovodrun"})),
    st.integers(2, 80),
    st.data(),
)
def test_any_world_s_ranks_are_found_again(name: str, world: int, data: st.DataObject) -> None:
    mark = MARKS[name]
    said = speakers(text_of(mark, list(range(world))))
    rank = data.draw(st.integers(0, world - 1))
    assert said.head(mark(rank) + "Traceback (most recent call last):").rank == rank


def test_numbers_that_do_not_come_back_are_no_ranks() -> None:
    steps = "".join(f"[{step}] loss {9 / (step + 1):.3f}\n" for step in range(40))
    assert speakers(steps).head("[7] loss 1.1").rank is None
    assert learn(sample("".join(f"{step}: loss\n" for step in range(300)))).name == ""


def test_hosts_are_no_ranks_and_what_stands_behind_them_is_read() -> None:
    text = "".join(f"dgx-{host}: [rank{host}]: {words}\n" for words in WORDS for host in (17, 31))
    head = speakers(text).head("dgx-31: [rank5]: ValueError: x")
    assert (head.rank, head.host) == (5, "dgx-31")
    assert speakers(text).head("dgx-31: ValueError: x").rank is None


def test_workers_count_from_one_beside_a_master() -> None:
    text = "".join(
        f"[pod/t5-{pod}/pytorch] {words}\n" for words in WORDS for pod in ("master-0", "worker-0", "worker-1")
    )
    assert speakers(text).head("[pod/t5-worker-1/pytorch] KeyError: 1").rank == 2
    assert speakers(text).head("[pod/t5-master-0/pytorch] KeyError: 1").rank == 0


def test_local_ranks_of_a_second_node_become_ranks_by_its_report() -> None:
    text = (
        "[default0]:loading\n[default1]:loading\n[default0]:step 1\n[default1]:step 1\n"
        "  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 4711)\n"
    )
    assert speakers(text).head("[default1]:KeyError: 'y'").rank == 5


def test_a_process_is_known_by_what_ray_or_a_report_say_of_it() -> None:
    ray = "(RayTrainWorker pid=811, ip=10.0.0.7) Setting up process group for: env:// [rank=3, world_size=4]\n"
    assert speakers(ray).head("(RayTrainWorker pid=811, ip=10.0.0.7) KeyError: 'y'").rank == 3
    report = "  rank      : 6 (local_rank: 2)\n  exitcode  : -9 (pid: 9021)\n"
    assert speakers(report).rank_of_pid("9021") == 6
    assert speakers(report).rank_of_pid("902") is None


@pytest.mark.parametrize("mark", ["[rank {}] ", "rank={} ", '{{"rank": {}, "text": ', "[trainer.{}] ", "(rank {}/4) "])
def test_a_logger_s_own_mark_tells_the_rank(mark: str) -> None:
    text = "".join(f"{mark.format(rank)}{words}\n" for words in WORDS for rank in range(4))
    line = mark.format(3) + "loss is not finite"
    said = speakers(text)
    assert said.writer(line, said.head(line)) == 3


def test_unmarked_words_are_likely_of_the_one_rank_that_stopped() -> None:
    before = "".join(f"[rank {rank}] step {step}\n" for step in range(9) for rank in (0, 1, 2))
    after = "".join(f"[rank {rank}] step {step}\n" for step in range(9, 14) for rank in (0, 2))
    trace = "Traceback (most recent call last):\nKeyError: 'y'\n"
    assert speakers(before + trace + after).near(len(before)) == 1


def test_the_process_of_a_line() -> None:
    assert process_of("F1121 10:32:28.303929   16879 client.h:80] gone") == "16879"
    assert process_of("[gpu048:02131] *** Process received signal ***") == "2131"
    assert process_of("nothing of the kind") is None


@given(st.text(max_size=2_000), st.text(max_size=200))
def test_any_text_has_speakers(text: str, line: str) -> None:
    said = speakers(text)
    head = said.head(line)
    assert 0 <= head.body <= len(line)
    said.writer(line, head)
    said.near(len(text) // 2)
    assert all(rank >= 0 for rank in said.known)
