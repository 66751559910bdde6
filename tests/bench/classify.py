"""The cost of one verdict: batches of 500 cases with 8 KiB logs, single calls at 1, 8 and 256 KiB, all on one core."""

import statistics
import time
from collections.abc import Sequence

import orjson

from classifiers.case_builder import build_case
from classifiers.contracts import RawCase
from classifiers.diagnoser import Diagnoser
from service import settings
from tests.bench import workload

KIB = 1024
BATCH = 500
SIZES = (1, 8, 256)


def cases(count: int, size: int, seed: int) -> list[RawCase]:
    """Return cases with distinct logs of about `size` bytes."""
    return [build_case(orjson.loads(event)) for event in workload.events(count, seed=seed, size=size)]


def single(diagnoser: Diagnoser, given: Sequence[RawCase]) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds of one call for each case."""
    taken = []
    for case in given:
        began = time.perf_counter()
        diagnoser.diagnose([case])
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return statistics.median(taken), taken[int(len(taken) * 0.95)]


def run() -> None:
    """Print the results."""
    diagnoser = Diagnoser.load(settings.read().model_dir)
    diagnoser.diagnose(cases(50, 8 * KIB, seed=3))
    batch = cases(BATCH, 8 * KIB, seed=4)
    cpu = []
    for _ in range(5):
        began = time.process_time()
        diagnoser.diagnose(batch)
        cpu.append((time.process_time() - began) * 1000 / BATCH)
    print(f"batches of {BATCH}, 8 KiB logs: {statistics.median(cpu):.2f} ms of processor time a case")
    for size in SIZES:
        p50, p95 = single(diagnoser, cases(100 if size < 100 else 30, size * KIB, seed=5))
        print(f"one call, {size:3} KiB log:   p50 {p50:6.2f} ms   p95 {p95:6.2f} ms")
