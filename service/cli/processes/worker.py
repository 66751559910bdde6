"""`faultline worker`: consume job completions from Kafka, in one process or several."""

import argparse
import gc
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from service import compose, settings
from service.backoff import Backoff
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers, between
from service.cli.processes import start_checks
from service.errors import ConfigurationError, FaultlineError, ModelUnavailable, Unavailable
from service.internet_addresses import LAST_PORT
from service.listeners import serve_metrics
from service.messaging.background_consumer import BackgroundConsumer
from service.messaging.dead_letters import TooManyDeadLetters
from service.messaging.instance_id import claim
from service.messaging.kafka.config import KafkaConfig, instance_id
from service.messaging.kafka.connect import ensure_topic
from service.messaging.supervisor import Supervisor
from service.shutdown import ShutdownFlag, SignalShutdownFlag
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

# Exit codes of a process after which restarting it is pointless.
FATAL_CODES = frozenset({exit_codes.USAGE, exit_codes.NO_MODEL, exit_codes.TOO_MANY_DEAD_LETTERS})
MAX_PROCESSES = 64
GC_THRESHOLDS = (100_000, 50, 50)
METRICS_ADDRESS = "127.0.0.1"


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("worker", help="consume job completions from Kafka")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="consumer processes (default 1)")
    parser.add_argument("--name", help="prefix of the consumer names (default: this host's name)")
    parser.add_argument(
        "--metrics-port",
        type=between(1, LAST_PORT),
        metavar="PORT",
        help="serve metrics at this port, and those of further processes at the next ports",
    )
    parser.add_argument(
        "--metrics-address",
        default=METRICS_ADDRESS,
        metavar="ADDRESS",
        help=f"address of the metrics, which need no login (default {METRICS_ADDRESS})",
    )


def run(args: argparse.Namespace) -> int:
    """Consume until SIGTERM or SIGINT. Exit code 5: too many dead letters in a row."""
    read = settings.read()
    if not 1 <= args.processes <= MAX_PROCESSES:
        raise ConfigurationError(f"--processes: expected 1 to {MAX_PROCESSES}, got {args.processes}")
    if args.processes > 1 and read.database_url.get_secret_value().startswith("sqlite"):
        raise ConfigurationError(
            f"--processes {args.processes}: SQLite takes one writer at a time, so more than one process needs"
            " PostgreSQL (FAULTLINE_DATABASE_URL=postgresql://...)"
        )
    services = compose.build(read)
    config = services.kafka
    configure_logging()
    start_checks.check(services)
    # Report wrong settings before anything starts; restarted processes also find the model loaded.
    services.policy  # noqa: B018 - created on first access
    services.diagnoser  # noqa: B018 - as above
    services.delivery  # noqa: B018 - as above
    services.node_event_kafka  # noqa: B018 - as above
    host = args.name or socket.gethostname()
    with claimed(_name_scope(config, host), args.processes) as numbers:
        return _run_members(services, (args.metrics_address, args.metrics_port), host, numbers)


@contextmanager
def claimed(scope: str, count: int) -> Iterator[list[int]]:
    """Reserve so many instance numbers for the `with` block.

    Raises:
        OSError: all numbers are in use.
    """
    with ExitStack() as held:
        numbers: list[int] = []
        for _ in range(count):
            instance = claim(scope, numbers[-1] + 1 if numbers else 0)
            held.callback(instance.close)
            numbers.append(instance.number)
        yield numbers


def _run_members(
    services: compose.ProcessServices, metrics: tuple[str, int | None], host: str, numbers: list[int]
) -> int:
    config = services.kafka
    address, port = metrics
    stop = SignalShutdownFlag()
    stop.listen()

    def one(number: int, stop: ShutdownFlag) -> int:
        member = instance_id(config.group_id, host, number)
        return consume(services, stop, member, None if port is None else (address, port + number))

    if len(numbers) == 1:
        return one(numbers[0], stop)
    gc.freeze()  # loaded objects stay shared between the processes
    return Supervisor(numbers, one, FATAL_CODES).run(stop)


def consume(services: compose.ProcessServices, stop: ShutdownFlag, member: str, metrics: tuple[str, int] | None) -> int:
    """Run one group member and return its exit code; an error is printed as one clear line."""
    try:
        with _metrics(services, metrics):
            run_worker(services, stop, member=member)
    except FaultlineError as error:
        output.problem(error.detail)
        return exit_code_of(error)
    finally:
        services.close()
    return 0


def run_worker(services: compose.ProcessServices, stop: ShutdownFlag, *, member: str | None = None) -> None:
    """Consume until `stop` is set; runs in its own process, or in a thread of the API process.

    Args:
        services: the services of this process.
        stop: ends the worker; for example, a threading.Event.
        member: the static member name; None: a free name derived from the host name.

    Raises:
        TooManyDeadLetters: too many unreadable records in a row.
        ConfigurationError: the model, schema, broker or a setting is wrong.
    """
    config = services.kafka
    host = socket.gethostname()
    instance = claim(_name_scope(config, host)) if member is None else None
    name = member if instance is None else instance_id(config.group_id, host, instance.number)
    try:
        consumer = services.consumer(name)
        if not _ready(services.store.check, stop, services.telemetry):
            return
        services.store.log_bodies.check()
        _make_dead_letter_topic(config)
        freeze_memory()
        warn_if_root()
        log.info("%s reads %s from %s", name, ", ".join(config.topics), ", ".join(config.bootstrap_servers))
        with services.delivering(), services.maintenance(), node_event_consumer(services, stop, name) as combined:
            consumer.run(combined)
        log.info("%s has left the group", name)
    finally:
        if instance is not None:
            instance.close()


@contextmanager
def node_event_consumer(
    services: compose.ProcessServices, stop: ShutdownFlag, member: str | None
) -> Iterator[ShutdownFlag]:
    """Consume the node-event topic, if any, during the `with` block; yield the main consumer's flag.

    Raises:
        TooManyDeadLetters: too many unreadable records in a row on that topic.
        ConfigurationError: as for the main consumer.
    """
    config = services.node_event_kafka
    if config is None:
        yield stop
        return
    consumer = services.node_consumer(config, f"{member}-nodes")
    log.info("%s-nodes reads %s", member, ", ".join(config.topics))
    with BackgroundConsumer(consumer.run, stop) as background:
        yield background.stop


def freeze_memory(thresholds: tuple[int, int, int] = GC_THRESHOLDS) -> None:
    """Exclude loaded objects from garbage collection and make collections less frequent.

    A batch creates a million short-lived objects; with the default thresholds, garbage collection takes an eighth of
    the processor time (measured).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds)


def warn_if_root() -> None:
    """Warn if this process can read every file, since its checks are then the only protection of other users' files."""
    if os.geteuid() == 0:
        log.warning("running as root: use a user of its own that may read the job logs and nothing else")


def _make_dead_letter_topic(config: KafkaConfig) -> None:
    """Create the dead-letter topic, since a missing topic would block the consumer at the first dead letter."""
    try:
        ensure_topic(config, config.dead_letter_topic)
    except FaultlineError as error:
        log.warning("%s; dead letters wait until there is a topic %s", error.detail, config.dead_letter_topic)


def _name_scope(config: KafkaConfig, host: str) -> str:
    """Return the scope within which instance numbers are unique: group, host and brokers."""
    return "\n".join((config.group_id, host, *config.bootstrap_servers))


def configure_logging() -> None:
    """Log to standard error; the consumer itself logs each lost connection once, so Kafka's client stays silent."""
    output.log_to_stderr()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def _ready(check: Callable[[], None], stop: ShutdownFlag, telemetry: Telemetry) -> bool:
    """Wait until the database answers; False if stopped before."""
    backoff = Backoff()
    while not stop.is_set():
        try:
            check()
        except Unavailable as error:
            telemetry.database_up.set(0)
            pause = backoff.next()
            log.warning("%s; trying again in %.1f s", error.detail, pause)
            stop.wait(pause)
        else:
            telemetry.database_up.set(1)
            return True
    return False


class _metrics:  # noqa: N801 - reads as a with statement's function
    """Serves the metrics of one process at an address and port, if they are given."""

    def __init__(self, services: compose.ProcessServices, place: tuple[str, int] | None) -> None:
        self._services = services
        self._place = place

    def __enter__(self) -> None:
        if self._place is None:
            return
        address, port = self._place
        try:
            self._server = serve_metrics(address, port, self._services.telemetry.registry)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"--metrics-port: {address}:{port} can't be used: {reason}") from None

    def __exit__(self, *exception: object) -> None:
        if hasattr(self, "_server"):
            self._server.shutdown()
            self._server.server_close()


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for an error that ended the worker."""
    if isinstance(error, TooManyDeadLetters):
        return exit_codes.TOO_MANY_DEAD_LETTERS
    if isinstance(error, ModelUnavailable):
        return exit_codes.NO_MODEL
    return exit_codes.USAGE if isinstance(error, ConfigurationError) else exit_codes.FAILED
