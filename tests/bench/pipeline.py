"""Events per second through the null pipeline and the full one, on the same broker, database and process count."""

import multiprocessing
import resource
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg

from service import compose, settings
from service.cli.processes.worker import freeze_memory
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message
from tests.bench import null_pipeline, workload
from tests.labs import kafka, postgres

PROCESSES = 2
PARTITIONS = 4
IDLE_S = 4.0
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Speed:
    """The result of one pipeline: events a second, peak memory of its largest process in MiB."""

    rate: float
    memory_mib: float


def full_worker(environ: dict[str, str], number: int, ready: Barrier, idle_s: float) -> None:
    """Run one process of the real worker: consume until nothing was stored for `idle_s` seconds."""
    services = compose.build(settings.read(environ))
    services.diagnoser.diagnose([])
    freeze_memory()
    consumer = services.consumer(f"bench-{number}")
    stop = threading.Event()
    handled = services.telemetry.events

    def watch() -> None:
        seen, since = -1.0, time.monotonic()
        while not stop.wait(0.2):
            now = sum(sample.value for metric in handled.collect() for sample in metric.samples)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > idle_s:
                stop.set()

    ready.wait()
    threading.Thread(target=watch, daemon=True).start()
    consumer.run(stop)
    services.close()


def publish(bootstrap: str, topic: str, events: Sequence[bytes]) -> None:
    """Publish the events on the topic, spread over its partitions."""
    producer = Producer(KafkaConfig((bootstrap,), (topic,)))
    for start in range(0, len(events), 500):
        batch = events[start : start + 500]
        producer.send(topic, [Message(value, str(start + at).encode()) for at, value in enumerate(batch)])
    producer.close()


def timed(
    target: Callable[..., None], arguments: Sequence[tuple[object, ...]], count: Callable[[], int], total: int
) -> Speed:
    """Start the processes, release them together, and measure from the first stored event until `total` are stored."""
    ready: Barrier = SPAWN.Barrier(len(arguments) + 1)
    processes = [SPAWN.Process(target=target, args=(*given, ready, IDLE_S)) for given in arguments]
    for process in processes:
        process.start()
    ready.wait()
    while (first := count()) == 0:  # joining the group is not part of the measured work
        time.sleep(0.01)
    began = time.monotonic()
    while count() < total:
        if not any(process.is_alive() for process in processes):
            raise RuntimeError(f"the pipeline ended with {count()} of {total} events stored")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    peak = max(_peak_mib(process.pid) for process in processes)
    for process in processes:
        process.join()
    return Speed((total - first) / seconds, peak)


def _peak_mib(pid: int | None) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return kib / 1024


def run(total: int = 10_000) -> dict[str, float]:
    """Print and return the results: absolute rates and `ratio full/null`."""
    events = list(workload.events(total))
    share = workload.distinct([event.decode() for event in events[:2000]])
    print(f"{total:,} events with 8 KiB logs, {share:.0%} distinct after masking; {PROCESSES} processes each")
    with kafka.broker() as broker, postgres.server() as database:
        broker.create_topic("bench", PARTITIONS)
        publish(broker.address, "bench", events)
        null_url = database.create("null_pipeline")
        with psycopg.connect(null_url, autocommit=True) as connection:
            connection.execute(null_pipeline.TABLE)
            null = timed(
                null_pipeline.run,
                [(broker.address, "bench", "null", null_url)] * PROCESSES,
                lambda: _count(connection, "null_events"),
                total,
            )
        full_url = database.create("full_pipeline")
        environ = {
            "FAULTLINE_DATABASE_URL": full_url,
            "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": broker.address,
            "FAULTLINE_KAFKA_TOPICS": "bench",
            "FAULTLINE_KAFKA_GROUP_ID": "full",
        }
        services = compose.build(settings.read(environ))
        services.store.upgrade()
        services.close()
        with psycopg.connect(full_url, autocommit=True) as connection:
            full = timed(
                full_worker,
                [(environ, number) for number in range(PROCESSES)],
                lambda: _count(connection, "failures"),
                total,
            )
    print(f"null pipeline  {null.rate:8,.0f} events/s   peak {null.memory_mib:4.0f} MiB a process")
    print(f"full pipeline  {full.rate:8,.0f} events/s   peak {full.memory_mib:4.0f} MiB a process")
    print(f"ratio full/null: {full.rate / null.rate:.2f}")
    return {"null": null.rate, "full": full.rate, "ratio": full.rate / null.rate, "memory_mib": full.memory_mib}


def _count(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0
