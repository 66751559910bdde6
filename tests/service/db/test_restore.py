"""The drill of the runbook, "Backup and restore": dump, lose the database, restore, read the topic again."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from service.clock import SystemClock
from service.db.session import Store
from service.feedback.records import FeedbackInput, Labels
from service.feedback.service import Feedback
from service.formats import recognise
from service.logs.fetch import LogFetcher
from service.messaging.consumer import Consumer
from service.messaging.record import TopicPartition
from service.messaging.source import Committed
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.recommend.advise import Advisor
from service.telemetry import Telemetry
from tests.labs.postgres import Postgres
from tests.service.databases import engine_of
from tests.service.messaging.fakes import DeadLetterTopic
from tests.service.messaging.memory_source import MemoryBroker, MemorySource
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import ByWord, event

PLACES = [TopicPartition("jobs", number) for number in range(2)]
NAME = "restored"


class _Until:
    def __init__(self, done: Callable[[], bool]) -> None:
        self.is_set = done

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return self.is_set()


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker({"jobs": len(PLACES)}, {"jobs": "orion"})


def publish(broker: MemoryBroker, numbers: range) -> None:
    for number in numbers:
        log = [{"rank": 0, "stream": "stderr", "tail": f"ModuleNotFoundError: No module named 'm{number}'"}]
        status = "failed" if number % 3 else "succeeded"
        one: dict[str, Any] = event(f"job-{number}", status=status, logs=log)
        broker.put(PLACES[number % len(PLACES)], orjson.dumps(one))
    broker.put(PLACES[0], b"{ %d" % numbers.start)


def consume(store: Store, broker: MemoryBroker) -> None:
    clock, telemetry = SystemClock(), Telemetry()
    diagnose = diagnose_with(DiagnosisTools(store, LogFetcher(()), ByWord(), policy.built_in(), clock, telemetry))
    source = MemorySource(broker, "worker", ["jobs"])
    consumer = Consumer(source, recognise.parse, diagnose, DeadLetterTopic(), clock=clock, telemetry=telemetry)
    consumer.run(_Until(lambda: all((broker.committed(at) or 0) == len(log) for at, log in broker.logs.items())))


def contents(store: Store) -> dict[str, list[str]]:
    """Jobs, failures, verdicts, messages and dead letters by what they are about; each in order, with repetitions."""
    statements = {
        "jobs": "SELECT job_id FROM jobs",
        "failures": "SELECT j.job_id FROM failures f JOIN jobs j ON j.failure_id = f.id",
        "verdicts": "SELECT j.job_id FROM verdicts v JOIN jobs j ON j.failure_id = v.failure_id",
        "messages": "SELECT key FROM outbox",
        "dead letters": "SELECT place FROM dead_letters",
    }
    with engine_of(store).connect() as connection:
        return {
            name: sorted(str(row[0]) for row in connection.exec_driver_sql(statement))
            for name, statement in statements.items()
        }


def backup(url: str, folder: Path, postgres: Postgres | None) -> Path:
    target = folder / "backup"
    if postgres is None:
        with (
            closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)
    else:
        run(postgres, "pg_dump", "-Fc", "-f", str(target), url)
    return target


def restore(saved: Path, folder: Path, postgres: Postgres | None) -> str:
    if postgres is None:
        shutil.copy(saved, folder / "restored.sqlite3")
        return f"sqlite:///{folder}/restored.sqlite3"
    url = postgres.create(NAME)
    run(postgres, "pg_restore", "--exit-on-error", "-d", url, str(saved))
    return url


def run(postgres: Postgres, program: str, *arguments: str) -> None:
    subprocess.run([postgres.programs.folder / program, *arguments], check=True, capture_output=True, timeout=60)


def test_after_a_restore_and_a_replay_of_the_topic_nothing_is_lost_and_nothing_twice(
    store: Store,
    url: str,
    dialect: str,
    broker: MemoryBroker,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    postgres: Postgres | None = request.getfixturevalue("postgres") if dialect == "postgresql" else None
    publish(broker, range(30))
    consume(store, broker)
    with store.reading() as reading:
        failure = reading.failures.newest()
    advisor = Advisor(policy.built_in(), SystemClock())
    feedback = Feedback(store, SystemClock(), advisor, zone=ZoneInfo("UTC"))
    feedback.add(failure, "ana", FeedbackInput("correct", Labels("system", "SYS.5")))
    at_backup = {place: broker.committed(place) or 0 for place in PLACES}
    saved = backup(url, tmp_path, postgres)
    publish(broker, range(30, 60))
    consume(store, broker)
    before = contents(store)
    restored = Store(restore(saved, tmp_path, postgres))
    try:
        restored.check()
        assert len(contents(restored)["jobs"]) == 30  # what came after the backup is lost ...
        for place, offset in at_backup.items():
            # ... until the offsets are reset to before the backup
            broker.group.committed[place] = Committed(max(0, offset - 5))
        consume(restored, broker)
        assert contents(restored) == before
        assert len(before["jobs"]) == len(set(before["jobs"])) == 60
        with restored.reading() as reading:
            assert reading.failures.get(failure).row.side == "system"
            assert reading.audit_log.verify()[1] is None
    finally:
        restored.close()
        if postgres is not None:
            postgres.drop(NAME)
