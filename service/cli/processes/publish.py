"""`faultline publish`: publish events from files on the topic, for epilog scripts and load tests."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers, positive
from service.cli.files import check_readable
from service.clock import Clock, SystemClock
from service.contracts.event import MAX_EVENT_BYTES
from service.errors import ConfigurationError, FaultlineError, InvalidInput, invalid
from service.messaging.json_lines import lines
from service.messaging.kafka.config import is_topic
from service.messaging.kafka.producer import Producer
from service.messaging.record import Message

PIECE = 500
PIECE_BYTES = 8 * 1024 * 1024


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("publish", help="publish events from files on the topic")
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines, gzipped or not; - is standard input")
    parser.add_argument("--topic", help="default: the first of FAULTLINE_KAFKA_TOPICS")
    parser.add_argument("--rate", type=positive, metavar="N", help="at most N events a second")
    parser.add_argument("--quiet", action="store_true", help="print errors only")


def run(args: argparse.Namespace) -> int:
    """Publish every line; exit code 3: some lines were not JSON objects and were left out."""
    check_readable(args.files)
    services = compose.build(settings.read())
    config = services.kafka
    topic = args.topic or next(iter(config.clusters))
    if not is_topic(topic):
        raise invalid("--topic", "letters, digits, dots, dashes and underscores, at most 249", topic)
    bad: list[str] = []
    sent = 0
    producer = Producer(config)
    try:
        for piece in pieces(args.files, args.rate, bad):
            producer.send(topic, piece)
            sent += len(piece)
    except FaultlineError as error:
        output.problem(f"{error.detail}; {sent} events were published before")
        return exit_codes.USAGE if isinstance(error, ConfigurationError) else exit_codes.FAILED
    finally:
        producer.close()
    for line in bad:
        output.problem(line)
    if not args.quiet:
        output.line(f"published {sent} events on {topic}")
    return exit_codes.SOME_LINES_BAD if bad else exit_codes.OK


def pieces(
    names: Sequence[str], rate: float | None, bad: list[str], clock: Clock | None = None
) -> Iterator[list[Message]]:
    """Yield the messages of files in batches, at most `rate` a second; problems with lines are appended to `bad`."""
    clock = clock or SystemClock()
    began, given = clock.monotonic(), 0
    most = PIECE if rate is None else max(1, min(PIECE, int(rate / 10)))
    piece: list[Message] = []
    size = 0
    for message in messages(names, bad):
        piece.append(message)
        size += len(message.value or b"")
        if len(piece) < most and size < PIECE_BYTES:
            continue
        yield piece
        given += len(piece)
        piece, size = [], 0
        if rate is not None:
            clock.sleep(max(0.0, began + given / rate - clock.monotonic()))
    if piece:
        yield piece


def messages(names: Sequence[str], bad: list[str]) -> Iterator[Message]:
    """Yield one unchanged message a line, with a key that keeps the attempts of a job in order."""
    for name in names:
        try:
            for line in lines(name):
                place = f"{name}:{line.number}"
                if line.too_long:
                    bad.append(f"{place}: larger than {MAX_EVENT_BYTES} bytes")
                elif (found := _object(line.value)) is None:
                    bad.append(f"{place}: expected a JSON object")
                else:
                    yield Message(line.value, key_of(found))
        except InvalidInput as error:
            bad.append(error.detail)


def key_of(event: dict[str, Any]) -> bytes | None:
    """Return cluster/job_id of a native event or a Slurm record; None if it has neither."""
    cluster, job = event.get("cluster"), event.get("job_id", event.get("jobid"))
    if not isinstance(job, str | int):
        return None
    return (f"{cluster}/{job}" if isinstance(cluster, str) else str(job)).encode("utf-8", "replace")


def _object(value: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        try:  # orjson refuses what some writers produce, such as lone surrogates
            found = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None
