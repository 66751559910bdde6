"""`faultline serve`: run the API and the dashboard in one process; with --with-worker also the worker."""

import argparse
import errno
import logging
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from classifiers import garbage_collection
from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.processes import start_checks
from service.cli.processes.worker import configure_logging, exit_code_of, freeze_memory, run_worker, warn_if_root
from service.errors import ConfigurationError, FaultlineError
from service.internet_addresses import is_loopback
from service.periodic import PeriodicTask
from service.web.app import create_app
from service.web.limits import connections

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


log = logging.getLogger(__name__)

LAG_EVERY_S = 10.0
# A collection of this many new objects takes some 5 ms, during which no request is answered (measured).
GC_THRESHOLDS = (10_000, 20, 20)
# Whoever has waited for the database waits up to this long for a thread that computes, once for each statement of a
# page. With Python's own 5 ms the overview took 0.19 instead of 0.15 s while other pages were rendered (measured).
SWITCH_S = 0.001
GRACE_S = 20  # time for running requests to complete after SIGTERM


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "serve",
        help="run the API and the dashboard; with --with-worker also the worker",
        description="Listening beyond loopback requires an API token (faultline token create).",
    )
    parser.add_argument("--host", help="address to listen on (FAULTLINE_HOST, default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on; 0: any free port (FAULTLINE_PORT, default 8080)")
    parser.add_argument("--with-worker", action="store_true", help="consume from Kafka in this process too")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; running requests are completed.

    Raises:
        ConfigurationError: the port is in use, the schema is of another version, or no token allows other machines.
        ModelUnavailable: there is no model.
    """
    read = settings.read()
    given = {name: value for name in ("host", "port") if (value := getattr(args, name)) is not None}
    if not 0 <= given.get("port", 0) <= 65_535:  # noqa: PLR2004 - what a port can be
        raise ConfigurationError(f"--port: expected 0 to 65535, got {given['port']}")
    read = read.model_copy(update=given)
    configure_logging()
    logging.getLogger("alembic").setLevel(logging.WARNING)  # logs details of the database in long messages
    parts = compose.build(read)
    try:
        return _serve(parts, with_worker=args.with_worker)
    finally:
        parts.close()


def _serve(parts: compose.ProcessServices, *, with_worker: bool) -> int:
    host, port = parts.settings.host, parts.settings.port
    start_checks.check(parts)
    if with_worker:
        parts.kafka  # noqa: B018 - report that no broker is named before anything starts
    with bound(host, port) as listening:
        parts.store.check()
        parts.store.log_bodies.check()
        require_token(parts, host)
        parts.delivery  # noqa: B018 - report errors in its file before anything starts
        with garbage_collection.paused():
            app = create_app(parts.web())
        name, taken = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        server = connections.LimitedServer(
            uvicorn.Config(
                app,
                host=host,
                port=taken,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=True,
                forwarded_allow_ips=list(parts.settings.trusted_proxies),
                http=connections.protocol(connections.connection_limit(parts.settings.max_connections)),
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        output.line(f"Faultline is at http://{shown}:{taken}", error=True)
        # Otherwise a request waits up to 0.3 s, every half minute, while the model is searched for garbage (measured).
        freeze_memory(GC_THRESHOLDS)
        sys.setswitchinterval(SWITCH_S)
        with _side_work(parts, server, with_worker=with_worker) as failed, _restored_signals():
            server.run(sockets=[listening])
        return exit_code_of(failed[0]) if failed else 0


@contextmanager
def bound(host: str, port: int) -> "Iterator[socket.socket]":
    """Open a listening socket.

    Raises:
        ConfigurationError: the address is in use or not an address of this machine.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except socket.gaierror as error:
        raise ConfigurationError(f"FAULTLINE_HOST: {host} is not an address: {error.strerror}") from None
    with socket.socket(family, kind) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen(connections.BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ConfigurationError(
                    f"port {port} on {host} is in use: stop the program that uses it, or choose another port (--port)"
                ) from None
            raise ConfigurationError(f"can't listen on {host} port {port}: {error.strerror}") from None
        yield listening


def require_token(parts: compose.ProcessServices, host: str) -> None:
    """Check that the server listens on loopback only, or that an API token exists.

    Raises:
        ConfigurationError: other machines could reach it, and no token exists.
    """
    if is_loopback(host):
        return
    with parts.store.reading() as reading:
        if reading.tokens.any():
            return
    raise ConfigurationError(
        f"{host} is reachable from other machines, and there is no API token: create one first "
        "(faultline token create NAME --purpose read,act), or listen on 127.0.0.1"
    )


@contextmanager
def _side_work(
    parts: compose.ProcessServices, server: uvicorn.Server, *, with_worker: bool
) -> "Iterator[list[BaseException]]":
    """Run the worker or the background tasks during the `with` block; a worker that fails stops the server."""
    failed: list[BaseException] = []
    if not with_worker:
        warn_if_root()
        tasks = [PeriodicTask(parts.revision.revise_by_late_logs, name="late logs")]
        if parts.settings.kafka_bootstrap_servers:
            tasks.append(PeriodicTask(parts.measure_lag, LAG_EVERY_S, name="consumer lag"))
        for task in tasks:
            task.start()
        try:
            with parts.delivering(), parts.maintenance():
                yield failed
        finally:
            for task in tasks:
                task.close()
        return
    stop = threading.Event()

    def work() -> None:
        try:
            run_worker(parts, stop)
        except FaultlineError as error:
            output.problem(error.detail)
            failed.append(error)
        except BaseException as error:  # a dead worker behind a live page would go unnoticed
            log.exception("the worker failed")
            failed.append(error)
        finally:
            server.should_exit = True

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    try:
        yield failed
    finally:
        stop.set()
        thread.join()


@contextmanager
def _restored_signals() -> "Iterator[None]":
    """Ignore the signal that Uvicorn raises again after shutdown; the services still have to be closed then."""

    def nothing(number: int, frame: "FrameType | None") -> None:
        del number, frame

    before = {number: signal.signal(number, nothing) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
