"""Sends events through a real broker into a real PostgreSQL while workers, broker and database are killed."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import psycopg

from service.db.session import Store
from service.errors import Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.consumer_lag import LagReader
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message
from service.settings import default_model_dir
from tests.chaos.outside_view import CONDITIONS, DATABASE_DOWN, Samples, ShownRates, metrics, rules, shown_wrongly
from tests.chaos.plans import Plan, Report, Trouble
from tests.labs import kafka, postgres
from tests.labs.kafka import Broker
from tests.labs.ports import free_row
from tests.labs.postgres import Postgres

TOPIC, GROUP, NAME = "jobs", "crashes", "crash-test"
CHUNK = 25
PATIENCE_S = 300.0
ERRORS = (
    "ModuleNotFoundError: No module named 'einops_{n}'",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered ({n})",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB.",
    "slurmstepd: error: Detected 1 oom_kill event in StepId={n}.0. Some of the step tasks have been OOM Killed.",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/{n}.idx'",
)
FIRST = "WHERE type = 'failure.diagnosed'"
STARTED = datetime(2026, 11, 19, tzinfo=UTC)
SHOWN = STARTED - timedelta(days=10), STARTED + timedelta(days=2)  # the period of a page


def event(rng: random.Random, number: int) -> dict[str, object]:
    """Return an event; one of three jobs fails, with a log."""
    failed = rng.random() < 1 / 3
    made: dict[str, object] = {
        "schema": "job-completion/1",
        "cluster": "orion",
        "job_id": f"{number}",
        "attempt": 0,
        "status": "failed" if failed else "succeeded",
        "user": f"u{number % 7}",
        "started_at": (STARTED + timedelta(seconds=number)).isoformat(),
        "ended_at": (STARTED + timedelta(seconds=number + 600)).isoformat(),
    }
    if failed:
        steps = "".join(f"step {step} loss {rng.random():.4f}\n" for step in range(rng.randint(0, 60)))
        made["exit_code"] = 1
        made["logs"] = [{"rank": 0, "stream": "stderr", "tail": steps + rng.choice(ERRORS).format(n=number)}]
    return made


class Worker:
    """A `faultline worker` process, started as an operator would start it."""

    def __init__(self, folder: Path, environment: dict[str, str], processes: int) -> None:
        self._log = folder / "worker.log"
        self._environment = environment
        self._processes = processes
        self._process: subprocess.Popen[bytes] | None = None
        self._metrics_port = free_row(processes)

    def start(self) -> None:
        """Start it; returns immediately."""
        command = [sys.executable, "-m", "service", "worker", "--processes", str(self._processes), "--name", NAME]
        command += ["--metrics-port", str(self._metrics_port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command], stdout=log, stderr=log, env=self._environment
            )

    def members(self) -> list[int]:
        """Return the consuming processes."""
        assert self._process is not None
        pid = self._process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]

    def kill_member(self, rng: random.Random) -> None:
        """Kill one of the processes with SIGKILL; the others are not notified."""
        os.kill(rng.choice(self.members()), signal.SIGKILL)

    def kill(self) -> None:
        """Kill the parent with SIGKILL, and thereby all of them; start it again as systemd would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)
        self.start()

    def restart_with(self, environment: dict[str, str]) -> None:
        """Kill it and start it with other variables in its environment, in addition to the first ones."""
        first = self._environment
        self._environment = first | environment
        self.kill()
        self._environment = first

    def stop(self) -> int:
        """Stop it gracefully; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(90)

    def ended(self) -> bool:
        """Return whether it ended without being stopped."""
        return self._process is not None and self._process.poll() is not None

    def metrics(self) -> Samples:
        """Return the metrics of the processes that answer."""
        return metrics(self._metrics_port, self._processes)

    def given(self) -> int:
        """Return how often members have been assigned partitions."""
        return self.output_text().count("partitions assigned: jobs")

    def output_text(self) -> str:
        """Return its log."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def close(self) -> None:
        """Remove all remaining processes."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)


class Publisher:
    """Publishes released messages in order, from a thread; waits for a broker that is down."""

    def __init__(self, config: KafkaConfig, messages: Sequence[Message]) -> None:
        self._producer = Producer(config, delivery_s=5.0)
        self._messages = messages
        self._released = 0
        self._changed = threading.Condition()
        self.sent = 0
        seen: set[bytes | None] = set()
        self._distinct = [0]
        for message in messages:
            seen |= set() if (message.key or b"").startswith(b"bad") else {message.key}
            self._distinct.append(len(seen))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release(len(self._messages) if exception[0] is None else 0)
        self._thread.join(PATIENCE_S if exception[0] is None else 0.1)
        self._producer.close()

    def events(self, *, released: bool = False) -> int:
        """Return the number of distinct published events, or of those that are released."""
        return self._distinct[self._released if released else self.sent]

    def released(self) -> int:
        """Return the number of messages that are released."""
        return self._released

    def release(self, count: int) -> None:
        """Release messages up to this total number."""
        with self._changed:
            self._released = max(self._released, min(count, len(self._messages)))
            self._changed.notify_all()

    def _run(self) -> None:
        while self.sent < len(self._messages):
            with self._changed:
                self._changed.wait_for(lambda: self._released > self.sent)
                chunk = self._messages[self.sent : min(self._released, self.sent + CHUNK)]
            try:
                self._producer.send(TOPIC, chunk)
            except Unavailable:
                time.sleep(0.2)
                continue
            self.sent += len(chunk)
            time.sleep(0.01)


@dataclass
class Round:
    """Runs a plan in running labs."""

    plan: Plan
    broker: Broker
    database: Postgres
    folder: Path

    def run(self) -> Report:
        """Publish, kill, wait until all is stored, stop gracefully, and check the stored rows."""
        rng = random.Random(self.plan.seed)
        began = time.monotonic()
        url = self.database.create(f"crashes_{self.plan.seed}")
        store = Store(url)
        store.upgrade()
        store.close()
        self.broker.create_topic(TOPIC, 6)
        config = KafkaConfig(tuple(self.broker.address.split(",")), (TOPIC,), group_id=GROUP)
        events = [event(rng, number) for number in range(self.plan.events)]
        messages = self._messages(rng, events)
        report = Report(published=len(events), records=len(messages))
        with ExitStack() as stack:
            worker = Worker(self.folder, environment(url, self.broker) | {**self.plan.settings}, self.plan.processes)
            stack.callback(worker.close)
            worker.start()
            publisher = stack.enter_context(Publisher(config, messages))
            stored = Stored(url)
            shown = stack.enter_context(ShownRates(url, *SHOWN))
            publisher.release(len(messages) // (len(self.plan.troubles) + 1))
            until(lambda: stored.count() > 0, "the first event is stored", worker)
            for number, trouble in enumerate(self.plan.troubles, start=2):
                publisher.release(len(messages) * number // (len(self.plan.troubles) + 1))
                time.sleep(rng.uniform(0.02, 0.4))
                report.in_hand += publisher.events() > stored.count()
                report.kills[trouble] += 1
                self._make(trouble, worker, rng, report, publisher, stored)
            for alert in self.plan.alarms:
                report.alarms[alert] = self._alarm(alert, worker, publisher)
            publisher.release(len(messages))
            until(lambda: publisher.sent == len(messages), "everything is published", worker)
            until(lambda: stored.count() >= len(events), "everything is stored", worker)
            self._committed(config, worker)
            code = worker.stop()
            if code != 0:
                report.wrong.append(f"the worker ended with {code}")
        report.looks = shown.looks
        report.wrong += [*shown.wrong, *shown_wrongly(url, *SHOWN)]
        self._look(url, events, report)
        report.seconds = time.monotonic() - began
        return report

    def _messages(self, rng: random.Random, events: Sequence[dict[str, object]]) -> list[Message]:
        out = [Message(json.dumps(one).encode(), str(one["job_id"]).encode()) for one in events]
        twice = rng.sample(out, int(len(out) * self.plan.again))
        for message in twice:
            out.insert(rng.randrange(len(out)), message)
        for number in range(self.plan.bad):
            out.insert(rng.randrange(len(out)), Message(b'{"job_id": %d, \xff' % number, b"bad%d" % number))
        return out

    def _make(
        self,
        trouble: Trouble,
        worker: Worker,
        rng: random.Random,
        report: Report,
        publisher: Publisher,  # noqa: ARG002 - for faults of other rounds
        stored: "Stored",  # noqa: ARG002 - for faults of other rounds
    ) -> None:
        given = worker.given()
        started = time.monotonic()
        if trouble == "member":
            until(lambda: bool(worker.members()), "a member is there", worker)
            worker.kill_member(rng)
        elif trouble == "worker":
            worker.kill()
        elif trouble == "broker":
            self.broker.restart()
        else:
            self.database.restart()
        if trouble in {"member", "worker"}:
            until(lambda: worker.given() > given, "the killed member is back", worker)
            report.returns.setdefault(trouble, []).append(time.monotonic() - started)

    def _alarm(self, alert: str, worker: Worker, publisher: Publisher) -> float:
        """Stop the server that an alert is about until its condition holds; returns the seconds until then."""
        rule, holds = CONDITIONS[alert]
        assert rules()[alert] == rule
        server = self.database if alert == DATABASE_DOWN else self.broker
        until(lambda: not holds(worker.metrics()), f"{alert} does not hold while all is well", worker)
        began = time.monotonic()
        server.stop()
        publisher.release(publisher.released() + CHUNK)  # without records, nobody asks the database
        until(lambda: holds(worker.metrics()), f"{alert} holds", worker)
        seconds = time.monotonic() - began
        server.start()
        until(lambda: not holds(worker.metrics()), f"{alert} holds no more", worker)
        return seconds

    def _committed(self, config: KafkaConfig, worker: Worker) -> None:
        lag = LagReader(config)
        try:
            until(lambda: lag.read() == {TOPIC: 0}, "every offset is committed", worker)
        finally:
            lag.close()

    def _look(self, url: str, events: Sequence[dict[str, object]], report: Report) -> None:
        """Each event is one job row; each failed one has one failure, one verdict and one outgoing message."""
        expected = {str(one["job_id"]) for one in events}
        failed = {str(one["job_id"]) for one in events if one["status"] == "failed"}
        with psycopg.connect(url) as connection:

            def rows(statement: str) -> list[str]:
                return [str(row[0]) for row in connection.execute(statement.encode()).fetchall()]

            jobs = rows("SELECT job_id FROM jobs")
            report.stored = len(set(jobs))
            report.lost = len(expected - set(jobs))
            report.twice = len(jobs) - len(set(jobs))
            first = "SELECT j.job_id FROM verdicts v JOIN jobs j ON j.failure_id = v.failure_id WHERE v.version = 1"
            found = {
                "failures": rows("SELECT j.job_id FROM failures f JOIN jobs j ON j.failure_id = f.id"),
                "verdicts": rows(first),
                "events": rows("SELECT j.job_id FROM logs l JOIN jobs j ON j.id = l.attempt_id"),
                "logs": rows("SELECT j.job_id FROM log_bodies l JOIN jobs j ON j.id = l.attempt_id"),
                "messages": [key.partition("/")[2] for key in rows(f"SELECT key FROM outbox {FIRST}")],
            }
            for what, ids in found.items():
                if Counter(ids) != Counter(failed):
                    report.wrong.append(f"{what}: {len(ids)} for {len(failed)} failed jobs")
            revised = rows("SELECT count(*) FROM verdicts WHERE version > 1")
            again = rows(f"SELECT count(*) FROM outbox {FIRST.replace('diagnosed', 'revised')}")
            if revised != again:
                report.wrong.append(f"{again[0]} messages for {revised[0]} revised verdicts")
            if int(rows("SELECT coalesce(sum(conflicts), 0) FROM jobs")[0]):
                report.wrong.append("conflicts where there are none")
            letters = rows("SELECT sha256 FROM dead_letters")
            if len(set(letters)) != self.plan.bad:
                report.wrong.append(f"{len(set(letters))} dead letters for {self.plan.bad} bad records")


class Stored:
    """Counts stored rows; 0 while the database is down."""

    def __init__(self, url: str) -> None:
        self._url = url

    def count(self) -> int:
        """Jobs."""
        return self._ask("SELECT count(*) FROM jobs")

    def _ask(self, statement: str) -> int:
        try:
            with psycopg.connect(self._url, connect_timeout=5) as connection:
                row = connection.execute(statement.encode()).fetchone()
        except psycopg.OperationalError:
            return 0
        return int(row[0]) if row else 0


def environment(url: str, broker: Broker) -> dict[str, str]:
    """Return the worker's settings, without the machine's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    return kept | {
        "FAULTLINE_DATABASE_URL": url,
        "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": broker.address,
        "FAULTLINE_KAFKA_TOPICS": TOPIC,
        "FAULTLINE_KAFKA_GROUP_ID": GROUP,
        "FAULTLINE_MODEL_DIR": str(model_dir()),
    }


def model_dir() -> Path:
    """Return the trained model: in FAULTLINE_MODEL_DIR, or where `make install` puts it."""
    return Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())


def until(happened: Callable[[], bool], what: str, worker: Worker, patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition, or fail with the end of the worker's log."""
    deadline = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > deadline or worker.ended():
            why = "the worker ended" if worker.ended() else f"not within {patience_s:.0f} s"
            raise AssertionError(f"{why}: {what}\n{worker.output_text()[-4000:]}")
        time.sleep(0.2)


@contextmanager
def labs() -> "Iterator[tuple[Broker, Postgres]]":
    """Yield a private broker and database, which may be killed."""
    with kafka.broker() as broker, postgres.server() as database:
        yield broker, database
