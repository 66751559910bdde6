"""Rounds in which worker, broker and database are connected by bad links: delay, jitter, loss, stalls, resets."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from sqlalchemy.engine import make_url

from tests.chaos.plans import Plan, Report
from tests.chaos.slow_link import Condition, SlowLink, slow_link
from tests.flows.crashes import Publisher, Round, Stored, Worker, until
from tests.labs import kafka, postgres
from tests.labs.kafka import Broker
from tests.labs.ports import free_port
from tests.labs.postgres import Postgres

# By name: what the link to the broker and the one to the database go through. Judgement: a link to another continent
# has 0.15 s in each direction, a Wi-Fi some percent of loss.
CONDITIONS: Final = {
    "delay": Condition(delay_s=0.05),
    "long delay": Condition(delay_s=0.15, jitter_s=0.05),
    "loss": Condition(delay_s=0.005, jitter_s=0.005, loss=0.05),
}
FAULTS: Final = (*CONDITIONS, "stall", "reset")
LONGEST_S: Final = 8.0  # of one fault


@dataclass(frozen=True, slots=True)
class Links:
    """The links to both servers; the worker knows only these, the checks look at the servers themselves."""

    broker: SlowLink
    database: SlowLink

    def of(self, trouble: str) -> tuple[SlowLink, str]:
        """The link and the fault of a name such as "stall of the database"."""
        fault, _, server = trouble.partition(" of the ")
        return (self.broker if server == "broker" else self.database), fault


def drawn(seed: int, count: int) -> list[str]:
    """So many faults; the same seed gives the same."""
    possible = [f"{fault} of the {server}" for fault in FAULTS for server in ("broker", "database")]
    return random.Random(seed).choices(possible, k=count)


@dataclass
class NetworkRound(Round):
    """A round whose plan names faults of `drawn`. Recovery: from a fault's end until all released events are stored."""

    links: Links = field(kw_only=True)

    @classmethod
    def between(cls, plan: Plan, broker: Broker, database: Postgres, folder: Path, links: Links) -> Self:
        """The round in which the worker reaches both servers over the links."""
        url = make_url(database.url(f"crashes_{plan.seed}")).set(port=links.database.port)
        settings = {
            "FAULTLINE_DATABASE_URL": url.render_as_string(hide_password=False),
            "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{links.broker.port}",
        }
        return cls(replace(plan, settings={**plan.settings, **settings}), broker, database, folder, links=links)

    def _make(
        self,
        trouble: str,
        worker: Worker,
        rng: random.Random,
        report: Report,
        publisher: Publisher,
        stored: Stored,
    ) -> None:
        link, fault = self.links.of(trouble)
        lasts_s = rng.uniform(1, LONGEST_S)
        if fault == "stall":
            with link.stalled():
                time.sleep(lasts_s)
        elif fault == "reset":
            link.reset()
        else:
            link.set(CONDITIONS[fault])
            time.sleep(lasts_s)
            link.set(Condition())
        ended = time.monotonic()
        until(lambda: stored.count() >= publisher.events(released=True), "all released events are stored", worker)
        report.returns.setdefault(trouble, []).append(time.monotonic() - ended)


@contextmanager
def linked_labs(seed: int) -> Iterator[tuple[Broker, Postgres, Links]]:
    """Yield a broker and a database with a link before each. The broker names its link to all clients."""
    ports = free_port(), free_port()
    with (
        slow_link(ports[0], port=ports[1], seed=seed) as to_broker,
        kafka.broker(port=ports[0], advertised_port=ports[1]) as broker,
        postgres.server() as database,
        slow_link(database.port, seed=seed + 1) as to_database,
    ):
        yield broker, database, Links(to_broker, to_database)
