"""Numbers that are none, or that nothing can hold, cost no case its verdict."""

import random
import re
from collections.abc import Sequence
from dataclasses import asdict, replace

import orjson
import pytest

from classifiers import signatures
from classifiers.composition import training_cases
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.diagnoser import Diagnoser

SEED = 11
NUMBER = re.compile(r"\d+(?:\.\d+)*")
ODD = (
    *("²", "٣", ".", "...", "1.2.3", "--9", "-1", "1e999", "nan", "inf", "0", "", "1-", "1-2-3", "1,,2"),
    *("9" * 20, "9" * 30, "9" * 400, "9" * 5_000),
)
HELD = "CUDA out of memory. GPU 0 has a total capacity of 9.50 GiB of which 0.50 GiB is free."
# Lines of which ranks, exit codes and sizes are read.
READ = (
    "Root Cause (first observed failure):\n  rank      : 8 (local_rank: 0)\n  exitcode  : -11 (pid: 4711)",
    "srun: error: gpu2: tasks 1,4-6: Exited with exit code 1",
    "mpirun noticed that process rank 14 with PID 4257 on node gpu2 exited on signal 11 (Segmentation fault).",
    "[rank: 2] Child process with PID 4712 terminated with code -7. Forcefully",
    f"{HELD} Tried to allocate 2.00 GiB. Process 71 has 7.00 GiB memory in use.",
    f"{HELD} Process 71 has 70.12 GiB memory in use.",
    f"{HELD} Process 71 has 9.00 GiB memory in use. Of the allocated memory 5.10 GiB is allocated by PyTorch",
    "RuntimeError: Rank 1 never joined, missing ranks: 3, 5-7",
    "Process name: [[45854,1],7]\n  Exit code:    77",
)
LARGEST_RANK = 999_999
LINES = 40  # of a case
CASES = 80


def mutated(text: str, rng: random.Random) -> str:
    """A text with odd numbers in place of some of its own, or cut, or doubled."""
    kind = rng.randrange(8)
    if kind == 0:
        return text[: rng.randrange(len(text) + 1)]
    if kind == 1:
        return text + rng.choice(("", " ", "\n")) + text
    found = list(NUMBER.finditer(text))
    for hit in sorted(rng.sample(found, rng.choice((1, len(found)))) if found else (), key=lambda one: -one.start()):
        text = text[: hit.start()] + rng.choice(ODD) + text[hit.end() :]
    return text


def headed(line: str, rng: random.Random) -> str:
    """A line as launchers and collectors write it, with an odd rank."""
    rank = rng.choice(("0", "5", *ODD))
    forms = (
        "{line}", "{line}", "{line}", "[rank{rank}]: {line}", "2026-01-05 03:1{digit}:00,123 {line}", "{rank}: {line}",
        'level=error rank={rank} msg="{line}"', '{{"rank": {rank}, "log": "{line}"}}',
    )  # fmt: skip
    return rng.choice(forms).format(line=line, rank=rank, digit=rng.randrange(10))


@pytest.fixture(scope="module")
def texts() -> Sequence[str]:
    """The examples of all signatures, parts of captured logs, and often the lines of which numbers are read."""
    rng = random.Random(SEED)
    examples = [line for entry in signatures.packaged().entries for line in entry.examples]
    logs = [stream.text for case in rng.sample(training_cases.captured(), 80) for stream in case.raw.streams]
    parts = [log[at : at + 600] for log in logs if (at := rng.randrange(len(log) + 1)) >= 0]
    return [*examples, *parts, *READ * 60]


def odd_case(texts: Sequence[str], rng: random.Random) -> RawCase:
    lines = [headed(mutated(text, rng), rng) for text in rng.choices(texts, k=LINES)]
    events = [mutated(text, rng)[:8_000] for text in rng.choices(texts, k=rng.choice((0, 8)))]
    middle = rng.choice((0, LINES // 2))
    return RawCase(
        JobFacts(
            rng.choice(("failed", "timeout", "out_of_memory")),
            job_id=rng.choice((None, "4711", "²")),
            scheduler=rng.choice((None, "slurm")),
            message=rng.choice((None, mutated(rng.choice(texts), rng)[:2_000])),
            gpus=16,
            nodes=("gpu1", "gpu2"),
        ),
        tuple(LogStream("\n".join(part)) for part in (lines[:middle], lines[middle:])),
        tuple(NodeEvent(text, node=rng.choice((None, "gpu1", "gpu9"))) for text in events),
    )


@pytest.mark.slow
def test_every_case_with_odd_numbers_has_a_verdict_that_can_be_stored(
    diagnoser: Diagnoser, texts: Sequence[str]
) -> None:
    rng = random.Random(SEED)
    for verdict in diagnoser.diagnose([odd_case(texts, rng) for _ in range(CASES)]):
        orjson.dumps(asdict(replace(verdict, measures=None)))  # integers of 64 bits, text that is UTF-8
        ranks = [one.rank for one in verdict.evidence] + [verdict.suspect.rank if verdict.suspect else None]
        assert all(rank is None or 0 <= rank <= LARGEST_RANK for rank in ranks)
        assert 0 <= verdict.confidence <= 1
