"""No page's work grows with what is stored: every route is asked of a short history and of one four times as long.

Both have as many failures a day, so that what a period holds is the same; windows and counts that stop are set small,
so that both are beyond them. Work is what SQLite's machine does, and the rows that steps of PostgreSQL's plans give.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, event

from service.clock import SystemClock
from service.db.all_tables import metadata
from service.db.session import Store
from service.failures.repository import facets, search, signature_hits
from service.failures.repository import listing as failure_listing
from service.groups.repository import listing as group_listing
from service.sql import paging
from service.stale_cache import StaleCache
from service.telemetry import Telemetry
from service.web import goodput_views
from service.web.app import create_app
from service.web.services import Services
from tests.bench import fill
from tests.bench.routes import ELSEWHERE, places, routes
from tests.labs import postgres
from tests.service.databases import engine_of
from tests.service.web.world import HERE, web_services

pytestmark = pytest.mark.slow

RATE, SHORT, LONG = 250, 8, 32  # failures a day; days
# Their work is that of the time that they are asked for, or all there is by design. Three addresses of the overview (2,
# 4 and 5, counted from 0) and the funnel of automation ask for 28 days, of which the short history has eight.
BY_PERIOD = ("/ 2", "/ 4", "/ 5", "/automation", "/goodput", "/reports/", "/export.", "/labels")
# Lists by row number that stop with the page, tables in which people and settings write, and notes of hours that are
# counted again soon.
SHORT_TABLES = {
    *("dead_letters", "incidents", "requests", "pending_logs", "group_mutes", "storms", "demotions", "switches"),
    *("tokens", "accounts", "endpoints", "saved_views", "audits", "reports", "deliveries", "controllers"),
    "hour_notes",
    *("report_subscriptions", "seals", "models", "model_promotions", "drift_reports", "fleet_priors"),
}
# PostgreSQL joins tables as small as these by reading them whole, whatever is wanted of them. Plans without these joins
# look expensive enough to be compiled, which takes longer than they do.
AS_IF_LARGE = (
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; "
    "SET gin_fuzzy_search_limit = 400"
)
# Less than half of what reading all failures of the long history takes: a list may fill up to its page and window.
SPARE = {"sqlite": 50_000, "postgresql": 7_000}


@dataclass(frozen=True)
class Asked:
    """The statements behind an answer, and the work of the database for them."""

    work: float
    statements: Sequence[tuple[str, Any]]


@dataclass
class Steps:
    """Instructions of SQLite's machine."""

    done: int = 0


def services(store: Store) -> Services:
    return web_services(store, lambda *_: pytest.fail("nothing is stored here"), SystemClock(), Telemetry())


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """A short history and a long one."""
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("scale")
        urls = [f"sqlite:///{folder}/{days}.sqlite3" for days in (SHORT, LONG)]
        with filled(urls) as made:
            yield made
    else:
        with postgres.server() as database, filled([database.create(f"d{days}") for days in (SHORT, LONG)]) as made:
            yield made


@contextmanager
def filled(urls: Sequence[str]) -> Iterator[tuple[Store, Store]]:
    for url, days in zip(urls, (SHORT, LONG), strict=True):
        fill.fill(url, RATE * days, days)
    with closing(Store(urls[0])) as short, closing(Store(urls[1])) as long:
        yield short, long


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Windows and counts that stop early, so that both histories are beyond them."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch)
        yield


def set_limits(patch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (facets, "OVER_SEARCHED", 100),
        (failure_listing, "Q_FEW", 100),
        (failure_listing, "Q_WINDOW", 500),
        (group_listing, "WINDOW", 10),
        (group_listing, "FEW", 5),
        (paging, "COUNT_LIMIT", 100),
        (signature_hits, "MOST", 200),
        (search, "NEWEST", 100),
    ):
        patch.setattr(module, name, value)
    # Computed in the background: no page waits for it.
    patch.setattr(goodput_views, "SMALL", 100)
    patch.setattr(StaleCache, "get_computed", lambda *_: None)
    patch.setitem(facets.count.__kwdefaults__ or {}, "over", 300)


def urls_of(store: Store) -> dict[str, str]:
    """What is asked, by a name that both histories share."""
    found = routes(places(store, SystemClock().now()))
    return {f"{route} {number}": url for route, urls in found.items() for number, url in enumerate(urls)}


def test_every_route_is_asked(stores: tuple[Store, Store]) -> None:
    short, _ = stores
    app = create_app(services(short))
    there = {path for path in paths(app.routes) if not path.startswith("/static")}
    assert there - ELSEWHERE == set(routes(places(short, SystemClock().now())))


def paths(some: Sequence[Any]) -> Iterator[str]:
    """The GET routes of an application."""
    for route in some:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            yield route.path
        elif hasattr(route, "effective_route_contexts"):
            yield from (one.path for one in route.effective_route_contexts() if "GET" in (one.methods or ()))


@pytest.fixture(scope="module")
def asked(stores: tuple[Store, Store]) -> tuple[Mapping[str, Asked], Mapping[str, Asked]]:
    """Every URL, asked once of each history."""
    short, long = (ask(store) for store in stores)
    return short, long


def test_no_page_works_more_the_more_there_is(
    stores: tuple[Store, Store], asked: tuple[Mapping[str, Asked], Mapping[str, Asked]]
) -> None:
    short, long = asked
    slow = {
        name: (short[name].work, long[name].work)
        for name in short
        if long[name].work > 1.5 * short[name].work + SPARE[stores[0].dialect]
        and not any(part in name for part in BY_PERIOD)
    }
    assert not slow, "\n".join(f"{name}: {was:,.0f} {now:,.0f}" for name, (was, now) in slow.items())


def test_no_page_scans_a_table(
    stores: tuple[Store, Store], asked: tuple[Mapping[str, Asked], Mapping[str, Asked]]
) -> None:
    found: dict[str, list[str]] = {}
    with plans(stores[1]) as plan:
        for name, answer in asked[1].items():
            for statement, parameters in answer.statements:
                scanned = set(scans(plan(statement, parameters))) - SHORT_TABLES
                if scanned:
                    found.setdefault(f"{scanned}: {statement}", []).append(name)
    assert not found


@contextmanager
def statements(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """The SELECTs of the block."""
    seen: list[tuple[str, Any]] = []

    def note(_c: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


@contextmanager
def plans(store: Store) -> Iterator[Callable[[str, Any], list[str]]]:
    """The plan of a statement; of many pages it is the same, and made once."""
    known: dict[tuple[str, str], list[str]] = {}
    postgresql = store.dialect == "postgresql"
    explain, column = ("EXPLAIN", 0) if postgresql else ("EXPLAIN QUERY PLAN", 3)
    with engine_of(store).connect() as connection:
        if postgresql:
            connection.exec_driver_sql("SET enable_seqscan = off")  # whether an index can serve it

        def plan(statement: str, parameters: Any) -> list[str]:
            key = statement, repr(parameters)
            if key not in known:
                known[key] = [row[column] for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)]
            return known[key]

        yield plan


def scans(lines: Sequence[str]) -> Iterator[str]:
    """The tables of ours that a plan reads from end to end, in no index."""
    for line in lines:
        words = line.split()
        if "Seq Scan on" in line:
            yield words[words.index("on") + 1]
        elif words[0] == "SCAN" and words[1] in metadata.tables and "USING" not in words:
            yield words[1]


def ask(store: Store) -> dict[str, Asked]:
    """Ask for every URL; of each the statements, and what they cost the database."""
    found: dict[str, Asked] = {}
    known: dict[tuple[str, str], float] = {}
    with (
        steps_of_sqlite(engine_of(store)) as steps,
        statements(engine_of(store)) as seen,
        TestClient(create_app(services(store)), base_url=HERE) as client,
    ):
        for name, url in urls_of(store).items():
            seen.clear()
            steps.done = 0
            assert client.get(url).status_code == 200, url
            made = list(seen)
            work = steps.done if store.dialect == "sqlite" else rows_in_postgres(store, made, known)
            found[f"{name} {url}" if "since=365d" in url else name] = Asked(work, made)
    return found


@contextmanager
def steps_of_sqlite(engine: Engine) -> Iterator[Steps]:
    """Counts the instructions of SQLite's machine; nothing on PostgreSQL."""
    steps = Steps()
    if engine.dialect.name != "sqlite":
        yield steps
        return

    def step() -> int:
        steps.done += 100
        return 0

    def watch(driver: Any, *_rest: Any) -> None:
        driver.set_progress_handler(step, 100)

    event.listen(engine, "checkout", watch)
    try:
        yield steps
    finally:
        event.remove(engine, "checkout", watch)


def rows_in_postgres(store: Store, made: Sequence[tuple[str, Any]], known: dict[tuple[str, str], float]) -> float:
    """Rows that the steps of the statements' plans gave or threw away; `known`: of statements before."""
    with engine_of(store).connect() as connection:
        connection.exec_driver_sql(AS_IF_LARGE)
        for statement, parameters in made:
            key = statement, repr(parameters)
            if key not in known:
                explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
                known[key] = rows_of(explained.scalar_one()[0]["Plan"])
    return sum(known[statement, repr(parameters)] for statement, parameters in made)


def rows_of(node: dict[str, Any]) -> float:
    """All rows that any step of a plan gave on or threw away."""
    own: float = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return own + sum(rows_of(child) for child in node.get("Plans", []))
