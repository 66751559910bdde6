"""Job completions with distinct 8 KiB logs, from a seed: the load of a busy day without memorizable content.

Words are generated from syllables, so that most logs stay distinct after numbers, paths and ids are masked;
`distinct` returns the share that does.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import orjson

from classifiers.masking import mask

SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "ke",
    "li",
    "mo",
    "nu",
    "pra",
    "que",
    "ris",
    "sto",
    "tul",
    "vex",
    "wim",
    "yar",
    "zen",
]
ERRORS = (
    "ModuleNotFoundError: No module named '{word}_{other}'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/{word}/{other}.idx'",
    "RuntimeError: {word}: mat1 and mat2 shapes cannot be multiplied ({a}x{b} and {b}x{a})",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {a}.00 MiB. GPU 0 has a total capacity of 79.10 GiB",
    "KeyError: '{word}_{other}'",
    "PermissionError: [Errno 13] Permission denied: '/mnt/{word}/{other}'",
    "ValueError: {word} must be one of {other}, got {a}",
    "OSError: [Errno 28] No space left on device: '/tmp/{word}'",
    "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://{word}.{other}:8080/v{a}",
    "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered ({word})",
    "AssertionError: {word} {other}",
    "TypeError: {word}() got an unexpected keyword argument '{other}'",
)
START = datetime(2026, 11, 1, tzinfo=UTC)


def word(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))


def log(rng: random.Random, size: int) -> str:
    """Return a log of about `size` characters: progress lines of invented words, a traceback, an error, teardown."""
    head: list[str] = []
    length = 0
    step = 0
    while length < size - 600:
        step += rng.randint(1, 50)
        names = " ".join(f"{word(rng)}={rng.random():.4f}" for _ in range(3))
        clock = f"08:{step % 60:02d}:{step % 59:02d},{rng.randint(0, 999):03d}"
        line = f"2026-11-01 {clock} INFO {word(rng)}.{word(rng)}: step {step} {names}"
        head.append(line)
        length += len(line) + 1
    error = rng.choice(ERRORS).format(word=word(rng), other=word(rng), a=rng.randint(2, 900), b=rng.randint(2, 900))
    tail = [
        "Traceback (most recent call last):",
        f'  File "/home/{word(rng)}/{word(rng)}/train.py", line {rng.randint(10, 900)}, in main',
        f"    {word(rng)}({word(rng)}, {word(rng)}={word(rng)})",
        f'  File "/home/{word(rng)}/{word(rng)}/{word(rng)}.py", line {rng.randint(10, 900)}, in {word(rng)}',
        f"    return self.{word(rng)}.{word(rng)}(x)",
        error,
        f"srun: error: gpu{rng.randint(1, 999):03d}: task 0: Exited with exit code 1",
    ]
    return "\n".join(head + tail)


def event(number: int, rng: random.Random, size: int = 8192) -> dict[str, object]:
    """Return the completion event of a failed job."""
    start = START + timedelta(seconds=number)
    return {
        "schema": "job-completion/1",
        "cluster": "bench",
        "job_id": str(number),
        "attempt": 0,
        "name": f"{word(rng)}-{word(rng)}",
        "user": f"user{rng.randint(1, 200)}",
        "team": f"team{rng.randint(1, 20)}",
        "queue": rng.choice(["gpu", "h200", "debug"]),
        "status": "failed",
        "exit_code": 1,
        "scheduler": "slurm",
        "started_at": start.isoformat(),
        "ended_at": (start + timedelta(minutes=rng.randint(1, 600))).isoformat(),
        "gpus": rng.choice([1, 4, 8, 64]),
        "nodes": [f"gpu{rng.randint(1, 999):03d}" for _ in range(rng.choice([1, 1, 2, 8]))],
        "logs": [{"rank": 0, "stream": "stderr", "tail": log(rng, size)}],
    }


def events(count: int, *, seed: int = 1, size: int = 8192) -> Iterator[bytes]:
    """Yield `count` events as JSON bytes."""
    rng = random.Random(seed)
    for number in range(count):
        yield orjson.dumps(event(number, rng, size))


def distinct(logs: Sequence[str]) -> float:
    """Return the share of logs that still differ from all others after masking."""
    return len({mask(text) for text in logs}) / len(logs)
