"""`faultline watch kubernetes`: watch a cluster and send an event for each finished Job and Pod."""

import argparse
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from service import compose, settings
from service.api_client import address_of
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.files import read_token
from service.clock import SystemClock
from service.errors import ConfigurationError
from service.listeners import serve_metrics
from service.messaging.record import Message
from service.shutdown import SignalShutdownFlag
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.event_sender import ApiSender, Sender, TopicSender
from service.watch.job_end_mapper import owner_collections
from service.watch.metrics import WatcherMetrics
from service.watch.node_watch import NodeStates
from service.watch.pod_logs import PodLogReader
from service.watch.watcher import Watcher, WatchOptions, collections

if TYPE_CHECKING:
    from service.kubernetes.api import KubernetesApi
    from service.kubernetes.paths import Object


DEFAULT_STATE = Path("faultline-watch.json")


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "watch", help="watch a Kubernetes cluster and send an event for each finished Job and Pod"
    )
    kinds = parser.add_subparsers(dest="scheduler", metavar="SCHEDULER", required=True)
    one = kinds.add_parser("kubernetes", help="finished Jobs and Pods, with container states, logs and nodes")
    one.add_argument("--cluster", required=True, help="the cluster's name in events")
    one.add_argument("--kubeconfig", type=Path, help="default: the service account of the pod, else ~/.kube/config")
    one.add_argument("--context", help="context of the kubeconfig")
    one.add_argument("--namespace", action="append", default=[], help="watch only this namespace; repeatable")
    one.add_argument("--selector", help="watch only Jobs, Pods and their owners of this label selector")
    one.add_argument(
        "--state", type=Path, default=DEFAULT_STATE, help=f"state file with the position (default {DEFAULT_STATE})"
    )
    one.add_argument("--topic", help="topic of the events (default: the first of FAULTLINE_KAFKA_TOPICS)")
    one.add_argument("--url", help="send to the API of the service at this address instead")
    one.add_argument("--token-file", type=Path, help="file with the API token, with --url")
    one.add_argument("--no-logs", action="store_true", help="do not read logs")
    one.add_argument(
        "--no-nodes", action="store_true", help="do not watch nodes (FAULTLINE_NODE_EVENT_TOPIC, or --url)"
    )
    one.add_argument("--metrics", metavar="HOST:PORT", help="serve metrics at this address")


def run(args: argparse.Namespace) -> int:
    """Watch until SIGTERM or SIGINT."""
    connect = client()
    settings.refuse_unknown(os.environ)
    output.log_to_stderr()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    sender, send_nodes = _sender(args)
    metrics, known, clock = WatcherMetrics(), NodeStates(), SystemClock()
    api = connect(args.kubeconfig, args.context)
    watcher = Watcher(
        api,
        WatchOptions(
            args.cluster,
            [
                *collections(args.namespace, args.selector, with_nodes=not args.no_nodes),
                *owner_collections(args.namespace, args.selector),
            ],
            args.state,
        ),
        sender,
        send_nodes,
        EvidenceCollector(api, known, None if args.no_logs else PodLogReader(api, known.silent)),
        known,
        clock,
        metrics,
    )
    try:
        with _metrics(args.metrics, metrics):
            stop = SignalShutdownFlag()
            stop.listen()
            watcher.run(stop)
    finally:
        sender.close()
        api.close()
    return 0


def client() -> "Callable[[Path | None, str | None], KubernetesApi]":
    """Return the function that connects to a cluster.

    Raises:
        ConfigurationError: the client is not installed.
    """
    try:
        from service.kubernetes.api import connect  # noqa: PLC0415 - the client is an extra
    except ImportError as error:
        raise ConfigurationError(
            f"this needs the Kubernetes client: pip install 'faultline[kubernetes]' ({error})"
        ) from None
    return connect


def _sender(args: argparse.Namespace) -> tuple[Sender, "Callable[[Sequence[Object]], None] | None"]:
    """Return the sender of job completions and the sender of node events."""
    if args.url is None:
        return _to_topics(args)
    if args.topic is not None:
        raise ConfigurationError("--topic and --url: expected one of them")
    if address_of(args.url) is None:
        raise ConfigurationError(f"--url: expected http(s)://..., got {args.url}")
    if args.token_file is not None:
        read_token(args.token_file)
    sender = ApiSender(args.url, None if args.token_file is None else partial(read_token, args.token_file))

    def send_nodes(notes: "Sequence[Object]") -> None:
        sender.post("/node-events", b"\n".join(orjson.dumps(one) for one in notes), "application/x-ndjson")

    return sender, None if args.no_nodes else send_nodes


def _to_topics(args: argparse.Namespace) -> tuple[Sender, "Callable[[Sequence[Object]], None] | None"]:
    if args.token_file is not None:
        raise ConfigurationError("--token-file: expected --url with it")
    services = compose.build(settings.read())
    config, producer = services.kafka, services.producer
    nodes_topic = (services.settings.node_event_topic or "").partition("=")[0]

    def send_nodes(notes: "Sequence[Object]") -> None:
        producer.send(nodes_topic, [Message(orjson.dumps(one)) for one in notes])

    sender = TopicSender(producer, args.topic or next(iter(config.clusters)))
    return sender, send_nodes if nodes_topic and not args.no_nodes else None


@contextmanager
def _metrics(place: str | None, metrics: WatcherMetrics) -> Iterator[None]:
    if place is None:
        yield
        return
    host, _, port = place.rpartition(":")
    try:
        server = serve_metrics(host.strip("[]") or "127.0.0.1", int(port), metrics.registry)
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"--metrics: {place} can't be used: {error}") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
