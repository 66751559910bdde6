"""`faultline worker`: consume job completions from Kafka, in one process or several."""

import argparse
import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import start_http_server

from service import compose, settings
from service.backoff import Backoff
from service.errors import ConfigurationError, FaultlineError, Unavailable
from service.messaging.background_consumer import BackgroundConsumer
from service.messaging.dead_letters import TooManyDeadLetters
from service.messaging.instance_id import InstanceNumber, claim
from service.messaging.kafka.config import KafkaConfig, instance_id
from service.messaging.kafka.topics import ensure_topic
from service.messaging.supervisor import Supervisor
from service.shutdown import ShutdownFlag, SignalShutdownFlag

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

log = logging.getLogger(__name__)

FAILED = 1
USAGE = 2
TOO_MANY_DEAD_LETTERS = 5
MOST_PROCESSES = 64
GC_THRESHOLDS = (100_000, 50, 50)


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("worker", help="consume job completions from Kafka")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="members of the group here (default 1)")
    parser.add_argument("--name", help="what the members are named after (default: this host's name)")
    parser.add_argument("--metrics-port", type=int, metavar="PORT", help="show metrics on 127.0.0.1:PORT and following")


def run(args: argparse.Namespace) -> int:
    """Consume until SIGTERM or SIGINT. Exit code 5: too many dead letters in a row."""
    read = settings.read()
    if not 1 <= args.processes <= MOST_PROCESSES:
        raise ConfigurationError(f"--processes: expected 1 to {MOST_PROCESSES}, got {args.processes}")
    if args.processes > 1 and read.database_url.get_secret_value().startswith("sqlite"):
        raise ConfigurationError(
            f"--processes {args.processes}: SQLite takes one writer at a time, so more than one process needs"
            " PostgreSQL (FAULTLINE_DATABASE_URL=postgresql://...)"
        )
    services = compose.build(read)
    config = services.kafka
    configure_logging()
    # What is wrong with the settings is said before anything starts; and a process that is started again finds the
    # model loaded.
    services.policy  # noqa: B018 - made when first asked for
    services.diagnoser  # noqa: B018 - as above
    services.delivery  # noqa: B018 - as above
    services.nodes_kafka  # noqa: B018 - as above
    host = args.name or socket.gethostname()
    slots: list[InstanceNumber] = []
    for _ in range(args.processes):
        slots.append(claim(_together(config, host), slots[-1].number + 1 if slots else 0))
    stop = SignalShutdownFlag()
    stop.listen()

    def one(number: int, stop: ShutdownFlag) -> int:
        member = instance_id(config.group_id, host, number)
        return consume(services, stop, member, None if args.metrics_port is None else args.metrics_port + number)

    if len(slots) == 1:
        return one(slots[0].number, stop)
    gc.freeze()  # what is there now stays shared between the processes
    return Supervisor([slot.number for slot in slots], one, frozenset({USAGE, TOO_MANY_DEAD_LETTERS})).run(stop)


def consume(services: compose.Services, stop: ShutdownFlag, member: str, metrics_port: int | None) -> int:
    """One member's life up to the exit code; errors end up as one clear line."""
    try:
        with _metrics(services, metrics_port):
            run_worker(services, stop, member=member)
    except TooManyDeadLetters as error:
        return _say(error, TOO_MANY_DEAD_LETTERS)
    except ConfigurationError as error:
        return _say(error, USAGE)
    except FaultlineError as error:
        return _say(error, FAILED)
    finally:
        services.close()
    return 0


def run_worker(services: compose.Services, stop: ShutdownFlag, *, member: str | None = None) -> None:
    """Consume until `stop` is set; for a process of its own, or a thread beside the API.

    Args:
        services: the parts; store, diagnose and kafka are used.
        stop: a threading.Event, for one.
        member: the static member's name; None: one after this host that is free.

    Raises:
        TooManyDeadLetters: so many unreadable records in a row that it stopped.
        ConfigurationError: model, schema, broker or settings are not as needed.
    """
    config = services.kafka
    host = socket.gethostname()
    slot = claim(_together(config, host)) if member is None else None
    name = member if slot is None else instance_id(config.group_id, host, slot.number)
    try:
        consumer = services.consumer(name)
        if not _ready(services.store.check, stop):
            return
        _make_dead_letter_topic(config)
        freeze_memory()
        log.info("%s reads %s from %s", name, ", ".join(config.topics), ", ".join(config.bootstrap_servers))
        with services.delivering(), services.maintenance(), node_event_consumer(services, stop, name) as either:
            consumer.run(either)
        log.info("%s has left the group", name)
    finally:
        if slot is not None:
            slot.close()


@contextmanager
def node_event_consumer(services: compose.Services, stop: ShutdownFlag, member: str | None) -> Iterator[ShutdownFlag]:
    """Read meanwhile what nodes say, where there is a topic of it; gives the stop that the first consumer obeys.

    Raises:
        TooManyDeadLetters: on that topic.
        ConfigurationError: as for the first consumer.
    """
    config = services.nodes_kafka
    if config is None:
        yield stop
        return
    second = services.node_consumer(config, f"{member}-nodes")
    log.info("%s-nodes reads %s", member, ", ".join(config.topics))
    with BackgroundConsumer(second.run, stop) as beside:
        yield beside.stop


def freeze_memory() -> None:
    """What was loaded stays; a batch makes and drops a million objects, which nobody need look through so often.

    Measured: an eighth of a batch's processor time at Python's own thresholds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _make_dead_letter_topic(config: KafkaConfig) -> None:
    """Where brokers make no topics by themselves, the first dead letter would wait for its topic, and all behind it."""
    try:
        ensure_topic(config, config.dead_letter_topic)
    except FaultlineError as error:
        log.warning("%s; dead letters wait until there is a topic %s", error.detail, config.dead_letter_topic)


def _together(config: KafkaConfig, host: str) -> str:
    """What the workers share that must have different numbers."""
    return "\n".join((config.group_id, host, *config.bootstrap_servers))


def configure_logging() -> None:
    """Log lines of this process; each lost connection is told by the consumer, once, and not by Kafka's client too."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def _ready(check: Callable[[], None], stop: ShutdownFlag) -> bool:
    """Wait until the database answers; False: stopped before."""
    backoff = Backoff()
    while not stop.is_set():
        try:
            check()
        except Unavailable as error:
            pause = backoff.next()
            log.warning("%s; trying again in %.1f s", error.detail, pause)
            stop.wait(pause)
        else:
            return True
    return False


class _metrics:  # noqa: N801 - reads as a with statement's function
    """The metrics of one process on loopback, where a port is given."""

    def __init__(self, services: compose.Services, port: int | None) -> None:
        self._services = services
        self._port = port

    def __enter__(self) -> None:
        if self._port is None:
            return
        try:
            self._server, _ = start_http_server(self._port, "127.0.0.1", self._services.telemetry.registry)
        except OSError as error:
            raise ConfigurationError(f"--metrics-port: {self._port} can't be used: {error.strerror}") from None

    def __exit__(self, *exception: object) -> None:
        if self._port is not None and hasattr(self, "_server"):
            self._server.shutdown()
            self._server.server_close()


def _say(error: FaultlineError, code: int) -> int:
    print(f"faultline: {error.detail}", file=sys.stderr, flush=True)
    return code
