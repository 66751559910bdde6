"""A real PostgreSQL primary and its streaming replica, which can take over from each other."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.labs.postgres import Postgres, server, stopped_server

STREAMING_SECONDS = 300


@dataclass
class PostgresPair:
    """Two servers. A commit is acknowledged when the replica has it on disk too, so a fail-over loses none."""

    primary: Postgres
    replica: Postgres
    copies: int = 0

    def url(self, database: str) -> str:
        """Return a URL that names both servers; clients use the one that accepts writes."""
        hosts, ports = "127.0.0.1,127.0.0.1", ",".join(str(port) for port in sorted(self._ports()))
        return f"postgresql://faultline@/{database}?host={hosts}&port={ports}&target_session_attrs=read-write"

    def create(self, database: str) -> str:
        """Create a database; return its URL."""
        self.primary.create(database)
        return self.url(database)

    def fail_over(self, replica_after_s: float = 0.0) -> None:
        """Kill the primary with SIGKILL; after a while, promote the replica."""
        self.primary.kill()
        time.sleep(replica_after_s)
        self.replica.promote()
        self.primary, self.replica = self.replica, self.primary

    def attach_replica(self) -> None:
        """Copy the primary to the other server, start it as replica, and require it for each commit."""
        self.copies += 1
        self.replica.copy_from(self.primary, f"replica_{self.copies}")
        self.replica.start()
        deadline = time.monotonic() + STREAMING_SECONDS
        while self.primary.sql("SELECT state FROM pg_stat_replication") != "streaming":
            if time.monotonic() > deadline:
                raise RuntimeError(f"the replica does not follow within {STREAMING_SECONDS} s")
            time.sleep(0.05)
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        self.primary.sql("SELECT pg_reload_conf()")

    def _ports(self) -> tuple[int, int]:
        return self.primary.port, self.replica.port


@contextmanager
def postgres_pair() -> Iterator[PostgresPair]:
    """Yield a primary with its streaming replica."""
    with server(wal_level="replica", synchronous_commit="on") as primary, stopped_server(like=primary) as replica:
        pair = PostgresPair(primary, replica)
        pair.attach_replica()
        yield pair
