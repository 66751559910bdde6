"""Open-loop load: requests at fixed times, independent of earlier answers; latency counts from the scheduled time.

This makes a stalled server visible, which a client that waits for each answer would not show.
"""

import http.client
import math
import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

AT_ONCE = 64
TIMEOUT_S = 120
ANSWERED = frozenset({200, 303})  # a search for one job and "my failures" lead to another page


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one route's requests from their scheduled times, in milliseconds, and the number of failures."""

    p50: float
    p95: float
    most: float
    failed: int


def ask(base: str, path: str, *, first_byte: bool = False) -> tuple[int, int]:
    """Send one request; return its status and the bytes received. `first_byte`: return after the first byte."""
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, len(answer.read(1) if first_byte else answer.read())
    finally:
        connection.close()


def measure(
    base: str,
    routes: Mapping[str, Sequence[str]],
    *,
    per_url: int,
    rate: float = 10.0,
    first_byte: Callable[[str], bool] = lambda _: False,
    seed: int = 1,
) -> dict[str, Latency]:
    """Request each URL `per_url` times, shuffled, at `rate` a second; return the latencies by URL."""
    order = [url for urls in routes.values() for url in urls] * per_url
    random.Random(seed).shuffle(order)
    taken: defaultdict[str, list[float]] = defaultdict(list)
    failed: defaultdict[str, int] = defaultdict(int)
    guard = threading.Lock()
    began = time.perf_counter() + 0.5

    def one(url: str, due: float) -> None:
        try:
            status, _ = ask(base, url, first_byte=first_byte(url))
        except OSError:
            status = 0
        late = (time.perf_counter() - due) * 1000
        with guard:
            taken[url].append(late)
            failed[url] += status not in ANSWERED

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, url in enumerate(order):
            due = began + number / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            pool.submit(one, url, due)
    return {url: _latency(some, failed[url]) for url, some in taken.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the quantile by nearest rank: the least value that at least `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * share) - 1, 0)]


def processor_ms(pid: int) -> float:
    """Return the processor time in ms used so far by a process, with that of its threads that have ended (Linux)."""
    # The clock of a process, as clock_getcpuclockid(3) gives it: Python has no function for another process's.
    return time.clock_gettime((~pid << 3) | 2) * 1000


def alone(base: str, url: str, pid: int, *, times: int, first_byte: bool) -> tuple[float, float]:
    """Request a URL without other load: median milliseconds, and the server's processor time for a request."""
    ask(base, url, first_byte=first_byte)
    before, walls = processor_ms(pid), []
    for _ in range(times):
        began = time.perf_counter()
        ask(base, url, first_byte=first_byte)
        walls.append((time.perf_counter() - began) * 1000)
    return statistics.median(walls), (processor_ms(pid) - before) / times


def _latency(values: Sequence[float], failed: int) -> Latency:
    return Latency(percentile(values, 0.5), percentile(values, 0.95), max(values), failed)
