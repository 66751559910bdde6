"""Failures a second that `faultline reclassify` classifies again: the plain loop, and two workers of a Dask cluster.

BENCH_FAILURES sets the number of stored failures (default 2,000; a million takes hours, most of it to store them).
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import orjson

from service import compose, settings
from service.cli.classifier import reclassify_on_dask
from service.contracts.event import from_object
from service.failures.records import FailureFilter
from service.learning.records import PACKAGED, Reclassified
from tests.bench import workload
from tests.labs import postgres
from tests.labs.dask_cluster import dask_cluster

FAILURES = 2_000
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
        events = workload.events(count)
        while batch := [from_object(orjson.loads(one)) for one in islice(events, BATCH)]:
            services.diagnose(batch)
        filters = FailureFilter(since=workload.START - timedelta(days=1))
        load = os.getloadavg()[0]
        again = reclassify_on_dask.reclassification(services, PACKAGED)
        processor = time.process_time()
        plain = rate(lambda: again.run(filters, per_second=AS_FAST_AS_POSSIBLE), count)
        each_ms = (time.process_time() - processor) / count * 1000
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
            divided = rate(lambda: on_dask("all", filters), count)
        services.close()
    shown = f"{divided:8.0f} failures/s, {divided / plain:.2f} times the plain loop"
    print(f"  {WORKERS} workers on a Dask scheduler   {shown}")


def rate(action: Callable[[], Reclassified], count: int) -> float:
    """Failures a second of a run that must read all of them."""
    started = time.monotonic()
    done = action()
    seconds = time.monotonic() - started
    if done.read != count:
        raise RuntimeError(f"{done.read} of {count} failures were read")
    return count / seconds
