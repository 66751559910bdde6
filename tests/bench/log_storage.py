"""Logs in the database, in a folder and in a bucket of an S3 server on this machine: rate, time to read, bytes.

BENCH_FAILURES sets the number of failures (default 2,000).
"""

import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import orjson

from service import compose, settings
from service.contracts.event import JobCompletion, from_object
from tests.bench import workload
from tests.labs import postgres
from tests.labs.object_storage import installed, s3_server

FAILURES = 2_000
BATCH = 500
READ = 200  # failures that are read again


@dataclass(frozen=True)
class Measured:
    """Figures of one storage.

    Attributes:
        rate: failures stored a second, from the event to the commit.
        cpu_ms: processor time of the worker for each.
        write_ms: the part of the time of each that its log took to be stored, with 16 requests at a time.
        read_ms: median time to read one failure with its log.
    """

    rate: float
    cpu_ms: float
    write_ms: float
    read_ms: float


def run() -> None:
    """Store the same failures in each way and print the figures."""
    count = int(os.environ.get("BENCH_FAILURES", FAILURES))
    events = [from_object(orjson.loads(one)) for one in workload.events(BATCH + count)]
    with ExitStack() as stack:
        server = stack.enter_context(postgres.server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, environ in _storages(stack, folder).items():
            database = f"logs_{name}"
            found = measure(environ | {"FAULTLINE_DATABASE_URL": server.create(database)}, events)
            size = int(server.sql(f"SELECT pg_database_size('{database}')")) / len(events) / 1024
            print(
                f"  {name:8} {found.rate:6.0f} failures/s, {found.cpu_ms:.2f} ms of processor time each, "
                f"{found.write_ms:.2f} ms for its log; read in {found.read_ms:.1f} ms; {size:.1f} KiB in PostgreSQL"
            )


def measure(environ: Mapping[str, str], events: Sequence[JobCompletion]) -> Measured:
    """Store the events with these settings, the first batch without being measured, and read some of them again.

    Raises:
        RuntimeError: not every log is stored where the settings say.
    """
    services = compose.build(settings.read(environ))
    services.store.upgrade()
    services.diagnose(events[:BATCH])
    measured = events[BATCH:]
    began, cpu, waited = time.monotonic(), time.process_time(), _seconds(services)
    for start in range(0, len(measured), BATCH):
        services.diagnose(measured[start : start + BATCH])
    took, cpu, waited = time.monotonic() - began, time.process_time() - cpu, _seconds(services) - waited
    labels = {"operation": "write", "outcome": "stored"}
    stored = services.telemetry.registry.get_sample_value("faultline_log_storage_operations_total", labels) or 0
    if "FAULTLINE_LOG_STORE_URL" in environ and stored != len(events):
        raise RuntimeError(f"{stored:.0f} of {len(events)} logs are in the log storage")
    reads = []
    for number in range(1, READ + 1):
        began = time.monotonic()
        with services.store.reading() as reading:
            detail = reading.failures.get(number)
        if not detail.logs[0].readable_streams()[0].text:
            raise RuntimeError(f"failure {number} has no log")
        reads.append(time.monotonic() - began)
    services.close()
    each = 1_000 / len(measured)
    return Measured(len(measured) / took, cpu * each, waited * each, statistics.median(reads) * 1_000)


def _storages(stack: ExitStack, folder: Path) -> dict[str, dict[str, str]]:
    """The settings of each storage; the bucket only if its server is installed."""
    files = folder / "files"
    files.mkdir()
    found: dict[str, dict[str, str]] = {"database": {}, "folder": {"FAULTLINE_LOG_STORE_URL": f"file://{files}"}}
    if installed():
        server = stack.enter_context(s3_server(folder))
        stack.enter_context(patch.dict(os.environ, server.environment))
        url = server.bucket("logs")
        found["bucket"] = {"FAULTLINE_LOG_STORE_URL": url, "FAULTLINE_LOG_STORE_ALLOW_HTTP": "true"}
    return found


def _seconds(services: compose.ProcessServices) -> float:
    found = services.telemetry.registry.get_sample_value("faultline_stage_seconds_sum", {"stage": "log_storage"})
    return found or 0.0
