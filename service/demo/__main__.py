"""`make demo`: an empty database, the worker, the API, the dashboard, and four weeks of job completions played."""

import argparse
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn

from service import compose, settings, weeks
from service.clock import SystemClock
from service.demo.player import PARTITIONS, TOPIC, Player
from service.errors import FaultlineError
from service.messaging.memory_source import MemoryBroker, MemorySource
from service.messaging.record import Record
from service.web.app import create_app

HOST = "127.0.0.1"
FOLDER = Path("var/demo")
STEP = 500
WAIT_S = 0.2
WEEKS = 3


class Patient(MemorySource):
    """A topic in memory that waits for records in `poll`, so that the idle demo does not use a full core."""

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """Return the available records, or none after the timeout, as a broker does."""
        records = super().poll(max_records, timeout_s)
        if not records:
            time.sleep(min(timeout_s, WAIT_S))
        return records


class TopicInMemory:
    """Dead-letter topic of the demo, which discards messages; the database table keeps the dead letters."""

    def send(self, rejected: object) -> None:
        """Discard the message."""


def announce(text: str) -> None:
    """Print a line of progress."""
    print(text, flush=True)  # noqa: T201 -- this is a command


def port_is_taken(port: int) -> bool:
    """Return whether the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def stored_count(services: compose.Services) -> int:
    """Return the number of job completions that the worker has committed."""
    samples = (sample for metric in services.telemetry.events.collect() for sample in metric.samples)
    return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))


class BackgroundThreads:
    """Threads of the worker and the server; an error in one stops all."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop
        self.failed: dict[str, Exception] = {}
        self._threads: list[threading.Thread] = []

    def start(self, name: str, action: Callable[[], object]) -> None:
        """Run `action` in its own thread."""

        def guarded() -> None:
            try:
                action()
            except Exception as error:  # noqa: BLE001 -- reported by the main thread
                self.failed[name] = error
                self.stop.set()

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Stop all threads and wait for them."""
        self.stop.set()
        for thread in self._threads:
            thread.join(timeout=10)


def main() -> int:
    """Run the demo until interrupted; exit code 2 if the port is in use."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the demo's database goes; emptied first")
    args = parser.parse_args()
    if port_is_taken(args.port):
        announce(f"port {args.port} is taken; choose another one: make demo DEMO_PORT={args.port + 1}")
        return 2
    shutil.rmtree(args.folder, ignore_errors=True)
    args.folder.mkdir(parents=True)
    database = (args.folder / "faultline.sqlite3").resolve()
    services = compose.build(
        settings.read({"FAULTLINE_DATABASE_URL": f"sqlite:///{database}", "FAULTLINE_PORT": str(args.port)})
    )
    # A background process starts with SIGINT ignored; end on either signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(services, args.port)
    except FaultlineError as error:
        announce(f"demo: {error.detail}")
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        services.close()


def publish(services: compose.Services) -> list[str]:
    """Publish the reports of the completed weeks, oldest first; return their names."""
    now = services.clock.now()
    this = weeks.of(now, services.zone)
    return [services.reports.publish(this.earlier(back)).week for back in range(WEEKS, 0, -1)]


def run(services: compose.Services, port: int) -> int:
    """Play the stream and serve the pages."""
    services.store.upgrade()
    announce("database created and migrated")
    announce(f"model loaded: {services.diagnoser.model}")
    broker = MemoryBroker({TOPIC: PARTITIONS})
    consumer = services.consumer_of(Patient(broker, "demo", [TOPIC]), TopicInMemory())
    server = uvicorn.Server(uvicorn.Config(create_app(services.web()), host=HOST, port=port, log_level="warning"))
    parts = BackgroundThreads(threading.Event())
    parts.start("worker", lambda: consumer.run(parts.stop))
    parts.start("server", server.run)
    announce("worker, API and dashboard started")
    player = Player(broker, SystemClock())
    total = player.backlog()
    try:
        shown = -STEP
        while not parts.stop.wait(0.1) and (done := stored_count(services)) < total:
            if done >= shown + STEP:
                shown = done
                announce(f"diagnosed and stored {done} of {total} job completions")
        if not parts.failed:
            announce(f"diagnosed and stored {total} of {total} job completions")
            published = publish(services)
            announce(f"weekly reports published: {', '.join(published)}\n")
            announce(f"Open http://{HOST}:{port}/ (new jobs keep arriving; Ctrl-C ends the demo)")
            with services.maintenance():
                player.live(parts.stop)
    finally:
        server.should_exit = True
        parts.join()
    for name, error in parts.failed.items():
        announce(f"the {name} stopped: {error}")
    return 1 if parts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
