"""From a label to new verdicts and back in real processes, each of which is killed on the way.

The API and two worker processes share a PostgreSQL database; labels come in by the API, models by the command line.
"""

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from service.db.session import Store
from tests.flows.crashes import Worker, environment, model_dir, until
from tests.flows.test_api import FAULTLINE, Place, ask
from tests.labs.kafka import Broker
from tests.labs.need import missing, need
from tests.labs.postgres import Postgres

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]  # one broker for all files of the group

TOPIC, GROUP, DATABASE = "learning-jobs", "learning", "learning_flow"
PARTITIONS = 2
WITHIN_S = 100.0  # every process uses a promoted model after ten seconds, on a busy machine later
LINE = "flexnet: no seat left on licence server lic{n} for feature solver-pro, giving up"
COMPARING = "comparing it with the model in use"


class Site:
    """The parts of a site: events go to a partition or to the API, and the verdicts are read from the database."""

    def __init__(self, url: str, broker: Broker, environ: dict[str, str], folder: Path) -> None:
        self.url = url
        self.environ = environ
        self.folder = folder
        self.sent = 0
        self._broker = broker.address

    def event(self) -> dict[str, Any]:
        """A job that fails of the licence server."""
        self.sent += 1
        return {
            "schema": "job-completion/1",
            "cluster": "orion",
            "job_id": f"{self.sent}",
            "attempt": 0,
            "status": "failed",
            "user": "ana",
            "exit_code": 1,
            "gpus": 8,
            "ended_at": (datetime.now(UTC) - timedelta(seconds=30)).isoformat(),
            "logs": [{"rank": 0, "stream": "stderr", "tail": f"step 1\n{LINE.format(n=self.sent)}\n"}],
        }

    def publish(self) -> None:
        """One event for each partition and so for each worker process."""
        from kafka import KafkaProducer  # noqa: PLC0415 - the client is imported once warnings are configured

        from service.messaging.kafka.connect import connected  # noqa: PLC0415 - as above

        producer = connected(KafkaProducer, bootstrap_servers=self._broker)
        try:
            for partition in range(PARTITIONS):
                producer.send(TOPIC, json.dumps(self.event()).encode(), partition=partition).get(30)
        finally:
            producer.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Rows of the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def sides(self, jobs: int) -> list[str]:
        """The sides of the newest jobs."""
        return [side for (side,) in self.rows(f"SELECT side FROM failures ORDER BY id DESC LIMIT {jobs}")]

    def stored(self) -> int:
        """The number of stored failures."""
        return int(self.rows("SELECT count(*) FROM failures")[0][0])

    def faultline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as an operator."""
        return subprocess.run(
            [*FAULTLINE, *arguments], env=self.environ, capture_output=True, text=True, timeout=600, check=False
        )

    def killed(self, *arguments: str, at: str) -> None:
        """Run the command, and kill it when it prints a line."""
        with subprocess.Popen([*FAULTLINE, *arguments], env=self.environ, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            seen = []
            for line in process.stderr:
                seen.append(line)
                if at in line:
                    process.kill()
                    break
            assert process.wait(60) == -signal.SIGKILL, "".join(seen)


def test_a_label_changes_the_verdicts_of_all_processes_and_a_rollback_returns_them(
    kafka_broker: Broker, postgres_server: Postgres, tmp_path: Path
) -> None:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    url = postgres_server.create(DATABASE)
    store = Store(url)
    store.upgrade()
    store.close()
    kafka_broker.create_topic(TOPIC, PARTITIONS)
    environ = environment(url, kafka_broker) | {
        "FAULTLINE_KAFKA_TOPICS": TOPIC,
        "FAULTLINE_KAFKA_GROUP_ID": GROUP,
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    site = Site(url, kafka_broker, environ, tmp_path)
    worker = Worker(tmp_path, environ, PARTITIONS)
    worker.start()
    try:
        before = _first_verdicts(site, worker)
        _label_and_kill_the_api(site)
        _promote_with_kills(site, worker)
        with Place(environ, tmp_path).serving() as (address, _):
            _changes(site, worker, address, "user")
            assert site.faultline("model", "rollback").returncode == 0
            _changes(site, worker, address, before)
        assert site.rows("SELECT count(*) FROM model_promotions") == [(2,)]
        whats = [what for (what,) in site.rows("SELECT what FROM audit_log WHERE what LIKE 'model.%' ORDER BY id")]
        assert whats[-2:] == ["model.promoted", "model.rolled_back"]
        assert worker.stop() == 0
    finally:
        worker.close()
        postgres_server.drop(DATABASE)


def _first_verdicts(site: Site, worker: Worker) -> str:
    """Both worker processes classify, and do not know the failure; returns the side that they give."""
    site.publish()
    _until_stored(site, worker, PARTITIONS)
    [side] = {*site.sides(PARTITIONS)}
    assert side != "user"
    return side


def _until_stored(site: Site, worker: Worker, count: int) -> None:
    until(lambda: site.stored() == count, f"{count} failures are stored", worker)


def _label_and_kill_the_api(site: Site) -> None:
    """The API answers with the label and is killed: the label is stored."""
    with Place(site.environ, site.folder).serving() as (address, process):
        failure = site.rows("SELECT min(id) FROM failures")[0][0]
        label = {"kind": "correct", "side": "user", "cause": "USER.4"}
        assert ask(address, f"/api/v1/failures/{failure}/feedback", body=label)[0] == 200
        process.kill()
        process.wait(30)
    assert site.rows("SELECT side, cause FROM labels") == [("user", "USER.4")]


def _promote_with_kills(site: Site, worker: Worker) -> None:
    """Retraining that is killed changes nothing; a worker process that is killed meanwhile starts with the model."""
    site.killed("retrain", at=COMPARING)
    assert site.rows("SELECT count(*) FROM model_promotions") == [(0,)]
    os.kill(worker.members()[0], signal.SIGKILL)
    done = site.faultline("retrain")
    assert done.returncode == 0, done.stdout + done.stderr
    os.kill(Random(1).choice(worker.members()), signal.SIGKILL)


def _changes(site: Site, worker: Worker, address: str, side: str) -> None:
    """All three processes give a side to failures that are sent later; none is lost or stored twice."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        sent = time.monotonic()
        count = site.stored() + PARTITIONS + 1
        site.publish()
        answer = ask(address, "/api/v1/events?wait=verdict", body=site.event())[1]
        _until_stored(site, worker, count)
        sides = site.sides(PARTITIONS + 1)
        assert answer["verdicts"][0]["side"] in sides
        if {*sides} == {side}:
            return
        assert sent < deadline, f"not in use in all processes: {sides}"
        time.sleep(0.5)
