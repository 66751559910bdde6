"""Failures a second that `faultline reclassify` classifies again: the plain loop, and two workers of a Dask cluster.

BENCH_FAILURES sets the number of stored failures (default 2,000; a million takes an hour, half of it to store them).
Of many failures the plain loop classifies the first 50,000 only: its rate does not depend on their number.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import orjson

from service import compose, settings
from service.cli.classifier import reclassify_on_dask
from service.contracts.event import from_object
from service.failures.records import FailureFilter
from service.learning.reclassification import RunOptions
from service.learning.records import PACKAGED, Reclassified
from tests.bench import workload
from tests.labs import postgres
from tests.labs.dask_cluster import dask_cluster

FAILURES = 2_000
IN_PLAIN_LOOP = 50_000
BATCH = 500
WORKERS = 2
AS_FAST_AS_POSSIBLE = 1e9


def run() -> None:
    """Store the failures, classify them again in both ways, and print the rates."""
    count = int(os.environ.get("BENCH_FAILURES", FAILURES))
    with postgres.server() as server, tempfile.TemporaryDirectory() as folder:
        environ = {"FAULTLINE_DATABASE_URL": server.create("reclassify")}
        services = compose.build(settings.read(environ))
        services.store.upgrade()
        store(environ, count)
        filters = FailureFilter(since=workload.START - timedelta(days=1))
        load = os.getloadavg()[0]
        again = reclassify_on_dask.reclassification(services, PACKAGED)
        processor = time.process_time()
        first = (
            replace(filters, until=workload.START + timedelta(seconds=IN_PLAIN_LOOP))
            if count > IN_PLAIN_LOOP
            else filters
        )
        plain, read = rate(lambda: again.run(first, RunOptions(per_second=AS_FAST_AS_POSSIBLE)))
        each_ms = (time.process_time() - processor) / read * 1000
        print(f"  load average at the start        {load:8.1f}")
        print(
            f"  plain loop, 1 process            {plain:8.0f} failures/s, {each_ms:.2f} ms of its processor time each"
        )
        with dask_cluster(Path(folder), environ) as cluster:
            cluster.start(WORKERS)

            def on_dask(name: str, which: FailureFilter) -> Reclassified:
                return reclassify_on_dask.run(services, which, PACKAGED, cluster.address, wanted=name)

            # The first tasks of each worker load the model.
            on_dask("warm", FailureFilter(since=filters.since, user="user1"))
            divided, read = rate(lambda: on_dask("all", filters))
        services.close()
    if read != count:
        raise RuntimeError(f"{read} of {count} failures were read")
    shown = f"{divided:8.0f} failures/s, {divided / plain:.2f} times the plain loop"
    print(f"  {WORKERS} workers on a Dask scheduler   {shown}")


def store(environ: Mapping[str, str], count: int) -> None:
    """Diagnose and store so many failures, a part of them in each of two processes."""
    half = count // 2
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(store_part, [(dict(environ), 0, half), (dict(environ), half, count)])


def store_part(environ: Mapping[str, str], begin: int, end: int) -> None:
    """Diagnose and store the failures with these numbers."""
    services = compose.build(settings.read(environ))
    rng = Random(begin)
    for number in range(begin, end, BATCH):
        numbers = range(number, min(number + BATCH, end))
        services.diagnose([from_object(orjson.loads(orjson.dumps(workload.event(one, rng)))) for one in numbers])
    services.close()


def rate(action: Callable[[], Reclassified]) -> tuple[float, int]:
    """Failures a second, and how many were read."""
    started = time.monotonic()
    done = action()
    return done.read / (time.monotonic() - started), done.read
