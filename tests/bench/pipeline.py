"""Events per second and processor time per event: the null pipeline and the full one on one broker and database.

Other work on the machine changes rates more than processor time: compare the latter.
"""

import multiprocessing
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import psycopg

from service import native_modules

native_modules.use()  # the processes that are started begin with this module

from service import compose, settings
from service.cli.processes.worker import freeze_memory
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message
from tests.bench import null_pipeline, stages, workload
from tests.bench.stages import OTHER, StageClock
from tests.labs import kafka, postgres

PROCESSES = 2  # of what is compared with the null pipeline
GROWTH = (1, PROCESSES, 4)
PARTITIONS = 4
PATIENCE_S = 60.0  # without a stored event
WANTED = 10_000  # events a second, for the calculation of cores
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Speed:
    """The result of one pipeline with some processes.

    Attributes:
        processes: their number.
        rate: events a second.
        memory_mib: peak memory of the largest process.
        memory_mib_half: the same when half of the events were stored.
        seconds: processor time of all processes by stage.
        events: events stored while time was taken.
    """

    processes: int
    rate: float
    memory_mib: float
    memory_mib_half: float
    seconds: dict[str, float]
    events: int

    @property
    def cost_ms(self) -> float:
        """Milliseconds of processor time per event."""
        return 1000 * sum(self.seconds.values()) / self.events


@dataclass(frozen=True)
class Signals:
    """What the processes of one run share: they begin together, end together, and send their times."""

    ready: Barrier
    done: Event
    times: "Queue[dict[str, float]]"


def full_worker(environ: dict[str, str], number: int, signals: Signals) -> None:
    """Run one process of the real worker until it is told to stop."""
    services = compose.build(settings.read(environ))
    services.diagnoser.diagnose([])
    freeze_memory()
    clock = StageClock()
    clock.install()
    consumer = services.consumer(f"bench-{number}")
    stop = threading.Event()

    def watch() -> None:
        signals.done.wait()
        stop.set()

    signals.ready.wait()
    began = time.process_time()
    threading.Thread(target=watch, daemon=True).start()
    consumer.run(stop)
    taken = time.process_time() - began
    signals.times.put({**clock.seconds, OTHER: taken - sum(clock.seconds.values())})
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
    signals = Signals(SPAWN.Barrier(len(arguments) + 1), SPAWN.Event(), SPAWN.Queue())
    processes = [SPAWN.Process(target=target, args=(*given, signals)) for given in arguments]
    for process in processes:
        process.start()
    signals.ready.wait()
    while (first := count()) == 0:  # joining the group is not part of the measured work
        time.sleep(0.01)
    began = last = time.monotonic()
    stored, half = first, 0.0
    while (now := count()) < total:
        if now > stored:
            stored, last = now, time.monotonic()
        if not half and now >= total / 2:
            half = max(_peak_mib(process.pid) for process in processes)
        if time.monotonic() - last > PATIENCE_S or not any(process.is_alive() for process in processes):
            raise RuntimeError(f"the pipeline ended with {now} of {total} events stored")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    peak = max(_peak_mib(process.pid) for process in processes)
    signals.done.set()
    spent: Counter[str] = Counter()
    for _ in processes:
        spent.update(signals.times.get(timeout=PATIENCE_S))
    for process in processes:
        process.join()
    return Speed(len(processes), (total - first) / seconds, peak, half or peak, dict(spent), total)


def _peak_mib(pid: int | None) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return kib / 1024


def run(total: int = 10_000) -> dict[str, float]:
    """Print and return the results: absolute rates, processor time, and the ratios full/null."""
    events = list(workload.events(total))
    share = workload.distinct([event.decode() for event in events[:2000]])
    print(f"{total:,} events with 8 KiB logs, {share:.0%} distinct after masking; {PROCESSES} processes each")
    with kafka.broker() as broker, postgres.server() as database:
        broker.create_topic("bench", PARTITIONS)
        publish(broker.address, "bench", events)
        null = _null(broker.address, database, total)
        grown = {processes: _full(broker.address, database, total, processes) for processes in GROWTH}
    full = grown[PROCESSES]
    print(f"null pipeline  {null.rate:8,.0f} events/s   peak {null.memory_mib:4.0f} MiB a process")
    print(f"full pipeline  {full.rate:8,.0f} events/s   peak {full.memory_mib:4.0f} MiB a process")
    print(f"ratio full/null: {full.rate / null.rate:.2f} by rate, {null.cost_ms / full.cost_ms:.2f} by processor time")
    print(f"processor time of an event: null {null.cost_ms:.3f} ms, full {full.cost_ms:.3f} ms, of it")
    print("\n".join(stages.table(full.seconds, full.events)))
    print(f"growth on {os.cpu_count()} cores, which broker, PostgreSQL and the processes share:")
    print("processes  events/s  ms an event  MiB a process at half of the events, at the end")
    for one in grown.values():
        memory = f"{one.memory_mib_half:8,.0f} {one.memory_mib:8,.0f}"
        print(f"{one.processes:9}  {one.rate:8,.0f}  {one.cost_ms:11.3f}  {memory}")
    print(f"{WANTED:,} events/s need {WANTED * full.cost_ms / 1000:.1f} cores for the workers alone, as calculated")
    return {
        "null": null.rate,
        "full": full.rate,
        "ratio": full.rate / null.rate,
        "ratio_of_processor_time": null.cost_ms / full.cost_ms,
        "memory_mib": full.memory_mib,
    }


def _null(address: str, database: postgres.Postgres, total: int) -> Speed:
    url = database.create("null_pipeline")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(null_pipeline.TABLE)
        given = [(address, "bench", "null", url)] * PROCESSES
        return timed(null_pipeline.run, given, lambda: _count(connection, "null_events"), total)


def _full(address: str, database: postgres.Postgres, total: int, processes: int) -> Speed:
    url = database.create(f"full_pipeline_{processes}")
    environ = {
        "FAULTLINE_DATABASE_URL": url,
        "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": address,
        "FAULTLINE_KAFKA_TOPICS": "bench",
        "FAULTLINE_KAFKA_GROUP_ID": f"full-{processes}",
    }
    services = compose.build(settings.read(environ))
    services.store.upgrade()
    services.close()
    with psycopg.connect(url, autocommit=True) as connection:
        given = [(environ, number) for number in range(processes)]
        return timed(full_worker, given, lambda: _count(connection, "failures"), total)


def _count(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0
