"""On a real broker, processes that a record kills one after the other find it, and the last one passes it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaProducer

from service.messaging.kafka.connect import connected
from tests.labs.kafka import Broker
from tests.service.messaging.fakes import event
from tests.service.messaging.kafka.test_source import config_for

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]  # one broker for all files of the group

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from service.clock import SystemClock
from service.formats import recognise
from service.messaging.consumer import Consumer
from service.messaging.dead_letters import DeadLetterSender
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.supervisor import Supervisor
from service.shutdown import SignalShutdownFlag
from service.telemetry import Telemetry

folder, address, topic, group, dead = Path(sys.argv[1]), *sys.argv[2:]
config = KafkaConfig((address,), (topic,), group_id=group, dead_letter_topic=dead)

def store(events, letters=()):
    if any(event.job_id == "deadly" for event in events):
        with (folder / "deaths").open("a") as deaths:
            deaths.write(f"{len(events)} ")
        os.kill(os.getpid(), signal.SIGKILL)
    with (folder / "stored").open("a") as stored:
        for event in events:
            stored.write(json.dumps({"job": event.job_id}) + chr(10))
        for letter in letters:
            stored.write(json.dumps({"place": letter.place, "reason": letter.reason}) + chr(10))

def run(number, stop):
    producer = Producer(config)
    source, sender = KafkaSource(config, member=f"m{number}"), DeadLetterSender(producer, config.dead_letter_topic)
    Consumer(source, recognise.parse, store, sender, clock=SystemClock(), telemetry=Telemetry()).run(stop)
    producer.close()
    return 0

stop = SignalShutdownFlag()
stop.listen()
sys.exit(Supervisor([0, 1], run, frozenset()).run(stop))
"""


def test_a_record_that_kills_its_reader_is_a_dead_letter_in_the_end(kafka_broker: Broker, tmp_path: Path) -> None:
    config = config_for(kafka_broker)
    topic, group, dead = next(iter(config.clusters)), config.group_id, config.dead_letter_topic
    producer = connected(KafkaProducer, bootstrap_servers=kafka_broker.address)
    for name in [*(f"j{number}" for number in range(10)), "deadly", *(f"j{number}" for number in range(10, 20))]:
        producer.send(topic, event(name), partition=0)
    producer.close()
    worker = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), kafka_broker.address, f"{topic}=orion", group, dead]
    )
    try:
        deadline = time.monotonic() + 180
        while len(found := _lines(tmp_path / "stored")) < 21:
            assert time.monotonic() < deadline, found
            assert worker.poll() is None
            time.sleep(0.1)
    finally:
        worker.terminate()
        worker.wait(60)
    letters = [one for one in found if "place" in one]
    assert [(one["place"], one["reason"]) for one in letters] == [
        (f"{topic}/0/10", "could not be handled: 4 processes were killed while they handled it alone")
    ]
    assert sorted(one["job"] for one in found if "job" in one) == sorted(f"j{number}" for number in range(20))
    assert (tmp_path / "deaths").read_text().split()[-4:] == ["1"] * 4


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
