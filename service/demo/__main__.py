"""`make demo`: an empty database, the API, the pages, and a month of a simulated cluster that continues live."""

import argparse
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from service import compose, settings, weeks
from service.demo import mailbox
from service.demo.month import Month
from service.demo.simulation import Simulation
from service.demo.story import DAYS, Story, StoryClock
from service.errors import FaultlineError
from service.people.repository.accounts import Account
from service.web.app import create_app

HOST = "127.0.0.1"
FOLDER = Path("var/demo")
STEP_S = 0.1
LIVE_EVERY_S = 2.0
WEEKS = 3
OWNER = "hugo"  # whose jobs are seen at the second address: a bug of his own, and failures that are not his fault


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


class BackgroundThreads:
    """Threads of the server and the story; an error in one stops all."""

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
    parser.add_argument("--port", type=int, default=8080, help="the next port shows the pages as the owner of a job")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the demo's database goes; emptied first")
    parser.add_argument("--days", type=int, default=DAYS, help="how many days are simulated before the pages open")
    args = parser.parse_args()
    if port_is_taken(args.port):
        announce(f"port {args.port} is taken; choose another one: make demo DEMO_PORT={args.port + 1}")
        return 2
    shutil.rmtree(args.folder, ignore_errors=True)
    args.folder.mkdir(parents=True)
    database = (args.folder / "faultline.sqlite3").resolve()
    now = datetime.now(UTC)
    clock = StoryClock(now - timedelta(days=args.days))
    mails = mailbox.create(args.folder.resolve(), f"http://{HOST}:{args.port}")
    found = settings.read(
        {
            "FAULTLINE_DATABASE_URL": f"sqlite:///{database}",
            "FAULTLINE_PORT": str(args.port),
            "FAULTLINE_DELIVERY_FILE": str(mails.settings),
        }
    )
    services = compose.build(found, clock)
    # A background process starts with SIGINT ignored; end on either signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(services, clock, now, args.port, mails)
    except FaultlineError as error:
        announce(f"demo: {error.detail}")
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        services.close()


def publish(services: compose.ProcessServices) -> list[str]:
    """Publish the reports of the completed weeks, oldest first; return their names."""
    now = services.clock.now()
    this = weeks.of(now, services.zone)
    return [services.reports.publish(this.earlier(back)).week for back in range(WEEKS, 0, -1)]


def servers(services: compose.ProcessServices, port: int) -> list[uvicorn.Server]:
    """The pages for an operator, and on the next port, unless it is in use, as the owner of some jobs sees them."""
    web = services.web()
    apps = [create_app(web)]
    if not port_is_taken(port + 1):
        owner = Account(0, OWNER, "local", "owner", users=(OWNER,), teams=(), created_at=services.clock.now())
        apps.append(create_app(replace(web, sole_person=owner)))
    return [
        uvicorn.Server(uvicorn.Config(app, host=HOST, port=port + number, log_level="warning"))
        for number, app in enumerate(apps)
    ]


def run(services: compose.ProcessServices, clock: StoryClock, now: datetime, port: int, mails: mailbox.Mailbox) -> int:
    """Play the month, serve the pages, and go on live."""
    services.store.upgrade()
    announce("database created and migrated")
    announce(f"model loaded: {services.diagnoser.model}")
    serving = servers(services, port)
    parts = BackgroundThreads(threading.Event())
    story, since = Story(now), clock.now()
    month = Month(services, clock, story, Simulation(story, since))
    try:
        month.play(since, now, lambda stored, day: announce(f"{day:%Y-%m-%d}: {stored} job completions stored"))
        clock.at = None
        published = publish(services)
        announce(f"weekly reports published: {', '.join(published)}\n")
        services.feedback.draw()  # otherwise the pages have no audit sample until the first periodic one
        for server in serving:
            parts.start("server", server.run)
        while not all(server.started for server in serving) and not parts.stop.wait(STEP_S):
            pass
        announce(f"Open http://{HOST}:{port}/ (new jobs end every few minutes; Ctrl-C ends the demo)")
        announce(f"No mail leaves this machine: it is written to the folder {mails.folder}")
        if len(serving) > 1:
            announce(f"What {OWNER} sees, the owner of some of the jobs: http://{HOST}:{port + 1}/")
        with services.delivering(), services.maintenance():
            while not parts.stop.wait(LIVE_EVERY_S):
                month.live(clock.now())
                for path in mails.arrived():
                    announce(f"a mail was written: {path}")
    finally:
        for server in serving:
            server.should_exit = True
        parts.join()
    for name, error in parts.failed.items():
        announce(f"the {name} stopped: {error}")
    return 1 if parts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
