"""What several lines of a case show together."""

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

EXTRACTOR = Extractor(Scanner(signatures.packaged()))
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
    ("held", "other", "scheduler", "is_foreign"),
    [
        ("70.20", "", "slurm", True),
        ("30.10", "", "slurm", False),  # less than half of the device
        ("70.20", "rank 1 runs as pid: 771\n", "slurm", False),  # a process of the job
        ("70.20", "", None, False),  # a machine that nobody shares out
    ],
)
def test_memory_that_a_foreign_process_holds_is_no_fault_of_the_program(
    held: str, other: str, scheduler: str | None, *, is_foreign: bool
) -> None:
    found = entries(LogStream(other + OUT_OF_MEMORY.format(pid=771, held=held), rank=0), scheduler=scheduler)
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


NOT_FINITE = "WARNING step {step}: rank {rank}: nan in decoder.{step}.weight grad, step skipped\n"


@pytest.mark.parametrize(
    ("ranks", "is_device"),
    [
        ((5, 5, 5), True),
        ((5,), False),  # once: it may be the batch
        ((5, 9, 5), False),  # several ranks: the numbers of the program
        ((0, 0, 0), False),  # rank 0 speaks for all
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
