"""What several lines of a case show together."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

FAULT = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 5 has a total capacity of 79.10 GiB "
    "of which 0.90 GiB is free. Process {pid} has {held} GiB memory in use. Including non-PyTorch memory, this process "
    "has 6.70 GiB memory in use.\n"
)


def entries(*streams: LogStream, scheduler: str | None = "slurm") -> set[str]:
    job = JobFacts(status="failed", scheduler=scheduler, gpus=8)
    extracted = EXTRACTOR.extract(RawCase(job=job, streams=streams))
    return {
        hit.id for item in extracted.items if item.role == "initiating" for hit in item.hits if hit.strength != "weak"
    }


def test_a_memory_fault_on_several_ranks_is_of_the_program() -> None:
    one = LogStream(FAULT, rank=0)
    assert "cuda.illegal-access-on-several" not in entries(one, LogStream("step 3 loss 1\n", rank=1))
    assert "cuda.illegal-access-on-several" in entries(one, LogStream(FAULT, rank=1))
    assert "cuda.illegal-access-on-several" in entries(LogStream(f"[rank0]: {FAULT}[rank4]: {FAULT}"))
    assert "cuda.illegal-access-on-several" not in entries(LogStream(f"[rank4]: {FAULT}[rank4]: {FAULT}"))


@pytest.mark.parametrize(
    ("held", "scheduler", "is_foreign"),
    [
        ("70.20", "slurm", True),
        ("30.10", "slurm", False),  # less than half of the device
        ("70.20", None, False),  # a machine that nobody shares out
    ],
)
def test_memory_that_a_foreign_process_holds_is_no_fault_of_the_program(
    held: str, scheduler: str | None, *, is_foreign: bool
) -> None:
    found = entries(LogStream(OUT_OF_MEMORY.format(pid=771, held=held), rank=0), scheduler=scheduler)
    assert ("pytorch.oom-held-by-others" in found, "pytorch.cuda-oom" in found) == (is_foreign, not is_foreign)


RAY = (
    "1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node\n"
    "PID\tMEM(GB)\tCOMMAND\n{pid}\t{held}\t{command}\n812\t40.10\tray::Trainer.run\n813\t39.90\tray::Trainer.run\n"
)


@pytest.mark.parametrize(
    ("held", "command", "is_foreign"),
    [
        ("600.40", "mysqld --datadir /var/lib", True),
        ("60.40", "mysqld --datadir /var/lib", False),  # the job's own hold more
        ("600.40", "ray::Loader.fetch", False),
    ],
)
def test_a_program_that_fills_the_node_is_named_by_ray(held: str, command: str, *, is_foreign: bool) -> None:
    found = entries(LogStream(RAY.format(pid=70, held=held, command=command)), scheduler=None)
    assert ("ray.oom-by-another-program" in found, "ray.oom" in found) == (is_foreign, not is_foreign)


@pytest.mark.parametrize(("later", "is_slower"), [("8.00s/it", True), ("1.30s/it", False)])
def test_a_time_limit_after_a_slow_down_is_not_only_a_matter_of_the_limit(later: str, *, is_slower: bool) -> None:
    steps = "".join(f"train: {n}/90 [00:10<00:50, {'1.20s/it' if n < 12 else later}]\n" for n in range(24))
    found = entries(LogStream(steps + "slurmstepd: *** JOB 7 ON cn1 CANCELLED AT 2026-02-03 DUE TO TIME LIMIT ***\n"))
    assert ("wordings.late-because-slower" in found, "slurm.time-limit" in found) == (is_slower, not is_slower)


@pytest.mark.parametrize(("allocated", "is_foreign"), [("6.10 GiB", True), ("512.00 MiB", True), ("68.90 GiB", False)])
def test_of_two_processes_on_a_device_the_one_that_pytorch_did_not_fill_is_foreign(
    allocated: str, *, is_foreign: bool
) -> None:
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. GPU 1 has a total capacity of 79.10 GiB of which 0.5 GiB is free. "
        f"Process 801 has 70.20 GiB memory in use. Process 955 has 6.70 GiB memory in use. Of the allocated memory "
        f"{allocated} is allocated by PyTorch.\n"
    )
    assert ("pytorch.oom-held-by-others" in entries(LogStream(line, rank=0))) is is_foreign


@pytest.mark.parametrize(
    ("said", "is_foreign"),
    [
        ("check: pid 4455 is of another user, started over ssh", True),
        ("check: pid 44551 is of another user, started over ssh", False),  # another process
        ("launcher: started pid 4455 for rank 3", False),
        ("", False),  # less than half of the device, and nobody says whose it is
    ],
)
def test_a_process_that_a_log_calls_a_strangers_took_the_memory_even_if_it_holds_the_smaller_part(
    said: str, *, is_foreign: bool
) -> None:
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of "
        "79.10 GiB of which 0.60 GiB is free. Process 4455 has 21.30 GiB memory in use. Including non-PyTorch memory, "
        "this process has 57.20 GiB memory in use. Of the allocated memory 55.10 GiB is allocated by PyTorch.\n"
    )
    assert ("pytorch.oom-held-by-others" in entries(LogStream(f"{line}{said}\n", rank=0))) is is_foreign
    larger = line.replace("Tried to allocate 2.00", "Tried to allocate 60.00")  # no room without the stranger either
    assert "pytorch.oom-held-by-others" not in entries(LogStream(f"{larger}{said}\n", rank=0))


NOT_FINITE = "WARNING step {step}: rank {rank}: nan in decoder.{step}.weight grad, step skipped\n"


@pytest.mark.parametrize(
    ("ranks", "is_device"),
    [
        ((5, 5, 5), True),
        ((5,), False),  # once: it may be the batch
        ((5, 9, 5), False),  # several ranks: the numbers of the program
        ((0, 0, 0), False),  # rank 0 reports for all
    ],
)
def test_numbers_that_are_not_finite_on_one_rank_again_and_again_are_of_its_device(
    ranks: tuple[int, ...], *, is_device: bool
) -> None:
    log = "".join(NOT_FINITE.format(step=40 + number, rank=rank) for number, rank in enumerate(ranks))
    found = entries(LogStream(f"{log}RuntimeError: nan in gradients, giving up\n", rank=0))
    assert ("wordings.same-rank-again" in found) == is_device


WORK = (
    "[rank{rank}]:[E1120 03:51:11.061727749 ProcessGroupNCCL.cpp:683] [PG ID 0 PG GUID {group} Rank {rank}] Watchdog "
    "caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn={size}, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600096 milliseconds before timing out.\n"
)
FIRST = {"rank": 0, "group": "0(default_pg)", "number": 7, "operation": "ALLREDUCE", "size": 80}


@pytest.mark.parametrize(
    ("second", "differ"),
    [
        ({"operation": "_ALLGATHER_BASE"}, True),
        ({"size": 160}, True),
        ({}, False),
        ({"number": 8, "operation": "BROADCAST"}, False),  # the other rank is behind
        ({"group": "3(tensor_parallel)", "operation": "BROADCAST"}, False),
    ],
)
def test_ranks_in_different_collectives_of_one_number_are_a_fault_of_the_program(
    second: dict[str, object],
    differ: bool,
) -> None:
    logs = [WORK.format(**FIRST), WORK.format(**{**FIRST, "rank": 1, **second})]
    job = JobFacts(status="failed", scheduler="slurm", gpus=8)
    case = RawCase(job=job, streams=tuple(LogStream(log, rank=rank) for rank, log in enumerate(logs)))
    found = {hit.id for item in EXTRACTOR.extract(case).items for hit in item.hits}
    assert ("pytorch.collectives-differ" in found) is differ


NOT_FOUND = "FileNotFoundError: [Errno 2] No such file or directory: '/projects/speech/wav'\n"
MOUNTED = "filer:/projects  9T  4T  5T  45% /projects\n"
LOCAL = "overlay  90G  9G  81G  10% /\n"


def on_nodes(*logs: str, nodes: tuple[str, ...] = ("n1", "n2", "n2")) -> set[str]:
    return entries(*(LogStream(log, rank=rank, node=nodes[rank]) for rank, log in enumerate(logs)))


@pytest.mark.parametrize(
    ("here", "there", "is_platform"),
    [
        (LOCAL + NOT_FOUND, MOUNTED, True),
        (NOT_FOUND, "found 812 files in /projects/speech/wav\n", True),
        (MOUNTED + NOT_FOUND, MOUNTED, False),  # the path is not there although the file system is
        (LOCAL + NOT_FOUND, LOCAL, False),
        (NOT_FOUND, "data: /projects/speech/wav\n", False),  # a setting that all ranks print
        (NOT_FOUND, "found 812 files in /projects/speech/wav\n" + NOT_FOUND, False),  # not there either
    ],
)
def test_a_path_that_only_one_node_lacks_is_a_matter_of_the_node(here: str, there: str, *, is_platform: bool) -> None:
    found = on_nodes(there, here)
    assert ("python.path-on-other-nodes" in found) is is_platform


def test_a_path_of_two_ranks_on_one_node_is_not_compared() -> None:
    found = on_nodes("found 812 files in /projects/speech/wav\n", NOT_FOUND, nodes=("n1", "n1"))
    assert "python.path-on-other-nodes" not in found


LACKING = "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory\n"
STARTED = "2026-11-20 10:00:00 imports done\n"


@pytest.mark.parametrize(
    ("logs", "is_platform"),
    [
        ((STARTED, LACKING, LACKING), True),
        ((LACKING, LACKING, LACKING), False),
        ((STARTED, STARTED, LACKING), False),  # the other rank of the node has it
        ((LACKING, STARTED, STARTED), False),  # rank 0 alone may need it
    ],
)
def test_a_library_that_only_one_node_lacks_is_a_matter_of_the_node(
    logs: tuple[str, ...], *, is_platform: bool
) -> None:
    assert ("python.software-on-other-nodes" in on_nodes(*logs)) is is_platform


TRUNCATED = "NCCL WARN Message truncated : received 104 bytes instead of 72\n"


@pytest.mark.parametrize(("other", "is_platform"), [("2.21.5+cuda12.4", True), ("2.27.3+cuda12.4", False)])
def test_nodes_with_different_versions_of_nccl_are_a_matter_of_the_platform(other: str, *, is_platform: bool) -> None:
    found = on_nodes("NCCL version 2.27.3+cuda12.4\n", f"NCCL version {other}\n{TRUNCATED}")
    assert ("pytorch.nccl-versions-differ" in found) is is_platform


OLD_DRIVER = "RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n"


def test_a_driver_of_one_node_that_is_older_than_the_others_is_a_matter_of_the_platform() -> None:
    found = on_nodes("Driver Version: 570.86.15\n", "Driver Version: 535.104.05\n" + OLD_DRIVER)
    assert ("cuda.driver-differs" in found, "cuda.driver-insufficient" in found) == (True, False)
    found = on_nodes("Driver Version: 535.104.05\n", "Driver Version: 535.104.05\n" + OLD_DRIVER)
    assert ("cuda.driver-differs" in found, "cuda.driver-insufficient" in found) == (False, True)


PEER_GONE = "RuntimeError: Connection closed by peer [10.0.0.7]:4411, gloo allreduce failed\n"


@pytest.mark.parametrize(
    ("end", "is_early"),
    [
        ("training finished after 990 steps\nclosing the log\n", True),
        ("training finished after 990 steps\nTypeError: save() got an unexpected keyword\n", False),
        ("step 990 loss 1.5\n", False),
    ],
)
def test_a_rank_that_has_done_its_work_before_the_others_left_them(end: str, *, is_early: bool) -> None:
    assert ("wordings.left-early" in on_nodes(PEER_GONE, end)) is is_early
    assert "wordings.left-early" not in on_nodes("step 1 loss 2\n", end)  # nothing was lost


@pytest.mark.parametrize(("allocated", "is_foreign"), [("70.10", False), ("6.20", True)])
def test_a_process_by_another_number_is_the_same_where_the_device_has_no_room_for_both(
    allocated: str, *, is_foreign: bool
) -> None:
    message = OUT_OF_MEMORY.format(pid=771, held="72.40").replace("Including non-PyTorch memory, this process ", "It ")
    line = message.strip() + f" Of the allocated memory {allocated} GiB is allocated by PyTorch.\n"
    assert ("pytorch.oom-held-by-others" in entries(LogStream(line, rank=0))) is is_foreign


ASKED = "2026-11-20 09:{:02d}:00 received SIGTERM, leaving the loop\n"
LOST = "2026-11-20 09:{:02d}:00 RuntimeError: Connection closed by peer [10.0.0.1]:401\n"


@pytest.mark.parametrize(
    ("asked", "lost", "before", "is_first"),
    [
        (30, 31, "", True),
        (31, 30, "", False),  # asked to end because of the failure
        (30, 31, "2026-11-20 09:29:50 CUDA error: an illegal memory access was encountered\n", False),
    ],
)
def test_a_process_that_was_asked_to_end_before_the_others_lost_it_did_not_fail(
    asked: int, lost: int, before: str, *, is_first: bool
) -> None:
    found = entries(LogStream(before + ASKED.format(asked), rank=8), LogStream(LOST.format(lost), rank=0))
    assert ("shell.asked-to-end-first" in found) is is_first


def test_a_process_that_lost_another_one_and_is_then_asked_to_end_was_not_asked_first() -> None:
    assert "shell.asked-to-end-first" not in entries(LogStream(LOST.format(29) + ASKED.format(30), rank=8))


def test_a_process_whose_scheduler_says_why_it_was_asked_to_end_is_no_riddle() -> None:
    logs = (LogStream(ASKED.format(30), rank=8), LogStream(LOST.format(31), rank=0))
    message = "The node was low on resource: memory."
    found = {
        reason: {
            hit.id
            for item in EXTRACTOR.extract(RawCase(JobFacts(status="failed", message=reason, gpus=16), logs)).items
            if item.role == "initiating"
            for hit in item.hits
        }
        for reason in (message, None)
    }
    assert "shell.asked-to-end-first" not in found[message]
    assert "shell.asked-to-end-first" in found[None]
