"""A backlog on the broker, drained by the real worker with two processes: are its rate and its memory flat?

BENCH_EVENTS sets the number of events (default 1,000,000; about 9 GB of disk for the broker and PostgreSQL together).
Three of ten jobs have failed, with logs of 8 KiB; the others succeeded. A line is printed every ten seconds. Other work
on the machine changes rates, so the processor time of the worker for an event is printed beside them.
"""

import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson
import psycopg

from service.db.session import Store
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message
from tests.bench import workload
from tests.bench.open_loop import processor_ms
from tests.flows.crashes import TOPIC, Worker, environment
from tests.labs import kafka, postgres

EVENTS = 1_000_000
FAILED_OF_TEN = 3
PROCESSES, PARTITIONS = 2, 4
EVERY_S = 10.0
PATIENCE_S = 300.0  # without a stored event
SENT_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at one moment.

    Attributes:
        at: seconds since the worker was started.
        stored: events in the database.
        memory_mib: resident memory of each process, the largest first.
        processor_ms: processor time of all processes so far.
    """

    at: float
    stored: int
    memory_mib: tuple[float, ...]
    processor_ms: float


def run() -> None:
    """Publish, drain, and print the figures."""
    count = int(os.environ.get("BENCH_EVENTS", EVENTS))
    with (
        tempfile.TemporaryDirectory(prefix="faultline-backlog-") as folder,
        kafka.broker() as broker,
        postgres.server(shared_buffers="1GB", max_wal_size="2GB") as database,
    ):
        url = database.create("backlog")
        store = Store(url)
        store.upgrade()
        store.close()
        broker.create_topic(TOPIC, PARTITIONS)
        began = time.monotonic()
        publish(broker.address, count)
        seconds = time.monotonic() - began
        published_mib = _size_mib(broker.folder / "data")
        print(f"{count:,} events published in {seconds:.0f} s, {published_mib:,.0f} MiB", flush=True)
        worker = Worker(Path(folder), environment(url, broker), PROCESSES)
        worker.start()
        try:
            samples = list(_drain(worker, url, count))
        finally:
            worker.close()
        size = int(database.sql("SELECT pg_database_size('backlog')")) / 2**20
        twice = database.sql("SELECT count(*) - count(DISTINCT job_id) FROM jobs", "backlog")
    print("\n".join(summary(samples)))
    print(f"stored {samples[-1].stored:,} of {count:,}, {twice} of them twice; {size:,.0f} MiB in PostgreSQL")


def events(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield events of failed jobs with logs of 8 KiB, and of jobs that succeeded, as JSON."""
    rng = random.Random(seed)
    for number in range(count):
        failed = number % 10 < FAILED_OF_TEN
        made = workload.event(number, rng, 8192 if failed else 0)
        if not failed:
            made |= {"status": "succeeded", "exit_code": 0, "logs": []}
        yield orjson.dumps(made)


def publish(bootstrap: str, count: int) -> None:
    """Publish the events on the topic, spread over its partitions."""
    producer = Producer(KafkaConfig((bootstrap,), (TOPIC,)))
    numbered = enumerate(events(count))
    while batch := list(islice(numbered, SENT_AT_ONCE)):
        producer.send(TOPIC, [Message(value, str(number).encode()) for number, value in batch])
    producer.close()


def summary(samples: Sequence[Sample]) -> list[str]:
    """Return the rate, the processor time and the memory of each quarter of the events, as lines."""
    lines = ["quarter  events/s  ms an event  MiB of the larger process at most"]
    last = samples[-1].stored
    for quarter in range(4):
        part = [one for one in samples if last * quarter / 4 <= one.stored <= last * (quarter + 1) / 4]
        if len(part) < 2:
            continue
        number = part[-1].stored - part[0].stored
        rate = number / (part[-1].at - part[0].at)
        cost = (part[-1].processor_ms - part[0].processor_ms) / max(number, 1)
        memory = max(max(one.memory_mib, default=0.0) for one in part)
        lines.append(f"{quarter + 1:7}  {rate:8,.0f}  {cost:11.2f}  {memory:8,.0f}")
    return lines


def _drain(worker: Worker, url: str, count: int) -> Iterator[Sample]:
    """Yield and print a sample every ten seconds until all events are stored.

    Raises:
        RuntimeError: a process ended, or nothing was stored for some minutes.
    """
    began = progressed = time.monotonic()
    before = Sample(0.0, 0, (), 0.0)
    with psycopg.connect(url, autocommit=True) as connection:
        while before.stored < count:
            time.sleep(EVERY_S)
            row = connection.execute("SELECT count(*) FROM jobs").fetchone()
            members = worker.members()
            memory = tuple(sorted(map(_resident_mib, members), reverse=True))
            now = Sample(time.monotonic() - began, int(row[0]) if row else 0, memory, sum(map(processor_ms, members)))
            if now.stored > before.stored:
                progressed = time.monotonic()
            if worker.ended() or time.monotonic() - progressed > PATIENCE_S:
                raise RuntimeError(f"{now.stored} of {count} events stored\n{worker.output_text()[-2000:]}")
            number = now.stored - before.stored
            cost = (now.processor_ms - before.processor_ms) / max(number, 1)
            sizes = " ".join(f"{one:5.0f}" for one in memory)
            print(
                f"{now.at:6.0f} s  {now.stored:9,}  {number / (now.at - before.at):7,.0f} events/s  "
                f"{cost:6.2f} ms of processor time each  MiB {sizes}",
                flush=True,
            )
            yield now
            before = now


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def _size_mib(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
