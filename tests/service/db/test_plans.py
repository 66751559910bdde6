"""The cost of lists is bounded: an index serves every filter and order, on both databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import ceil
from typing import Any, get_args

import pytest
from sqlalchemy import Connection, event

from service.db.all_tables import metadata
from service.db.session import ReadSession, Store
from service.failures.records import COUNTED_AS_FAILED, FailureFilter, FailureSort
from service.feedback.records import NewFeedback
from service.groups.records import GroupFilter
from service.nodes.records import DaySums, NewNodeEvent, NodeRow, NodeSort, Window
from service.sql.bulk import is_postgres
from tests.service.databases import connection_of, engine_of
from tests.service.sample_rows import NOON, job, put

ROWS = 3_000


# What ANALYZE, limited as by PRAGMA optimize, says of a million failures.
MILLION = {
    "user_name_ended_at_id": "630800 1001 1 1",
    "team_ended_at_id": "646570 1001 1 1",
    "symptom_ended_at_id": "378400 1001 1 1",
    "status_ended_at_id": "660960 1001 1 1",
    "side_ended_at_id": "574938 1001 1 1",
    "queue_ended_at_id": "617706 1001 1 1",
    "gpu_hours_lost_id": "953550 334 1",
    "fingerprint_ended_at_id": "892320 101 1 1",
    "ended_at_id": "1013148 1 1 1 1 1 1 1 1",
    "cluster_ended_at_id": "815760 1001 1 1",
    "cause_ended_at_id": "548418 1001 1 1",
    "category_ended_at_id": "148410 1001 1 1",
    "abstained": "94905 1 1",
}


@pytest.fixture
def filled(store: Store) -> Store:
    for part in range(10):
        numbers = range(part * ROWS // 10, (part + 1) * ROWS // 10)
        put(
            store,
            [
                job(
                    f"e{n}",
                    ended_at=NOON - timedelta(seconds=n),
                    user=f"user{n % 97}",
                    team=f"team{n % 31}",
                    queue=f"queue{n % 29}",
                    cluster=f"c{n % 23}",
                    nodes=(f"gpu{n % 89}",),
                    gpu_hours_lost=float(n % 101),
                    status=("failed", "timeout", "hung")[n % 3],
                )
                for n in numbers
            ],
            side=("user", "system", "hardware")[part % 3],
            cause=f"USER.{part}",
            category=f"{part}.1",
            symptom=f"A.{part}",
            fingerprint=f"v1:{part}",
        )
    with engine_of(store).connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    return store


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    seen: list[tuple[str, Any]] = []

    def note(_c: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(engine_of(store), "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine_of(store), "before_cursor_execute", note)


def plan(work: ReadSession, statement: str, parameters: Any) -> str:
    connection = connection_of(work.jobs)
    if is_postgres(connection):
        # Whether an index can serve it, not whether a table this small is worth one.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
    return "\n".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))


def scans(text: str) -> list[str]:
    """The lines of a plan that read a whole table: on SQLite a SCAN that follows no index, and is of a table."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        line
        for line in lines
        if "Seq Scan" in line
        or (line.startswith("SCAN ") and line.split()[1] in metadata.tables and "USING" not in line)
    ]


PAGES = {
    "all": FailureFilter(),
    "side": FailureFilter(side="user"),
    "cause": FailureFilter(cause="USER.1"),
    "symptom": FailureFilter(symptom="A.1"),
    "category": FailureFilter(category="5.1"),
    "cluster": FailureFilter(cluster="c7"),
    "queue": FailureFilter(queue="queue7"),
    "team": FailureFilter(team="team7"),
    "user": FailureFilter(user="user7"),
    "nobody": FailureFilter(user="nobody"),
    "node": FailureFilter(node="gpu7"),
    "node and side": FailureFilter(node="gpu7", side="user"),
    "suspect": FailureFilter(suspect="gpu7"),
    "group": FailureFilter(group="v1:3"),
    "status": FailureFilter(status="hung"),
    "abstained": FailureFilter(abstained=True),
    "an hour": FailureFilter(since=NOON - timedelta(hours=1), until=NOON),
    "words": FailureFilter(q="json"),
}


def test_no_page_of_failures_scans_a_table(filled: Store) -> None:
    with filled.reading() as reading, statements(filled) as seen:
        for filters in PAGES.values():
            cursor = reading.failures.page(filters, limit=20).next_cursor
            if cursor is not None:
                reading.failures.page(filters, limit=20, cursor=cursor)
    assert len(seen) > len(PAGES)
    with filled.reading() as reading:
        for statement, parameters in seen:
            text = plan(reading, statement, parameters)
            assert scans(text) == [], text


@pytest.mark.parametrize(
    ("filters", "sort"),
    [
        (FailureFilter(status=COUNTED_AS_FAILED), "-ended_at"),
        (FailureFilter(since=NOON - timedelta(days=365)), "-gpu_hours_lost"),
    ],
)
def test_a_list_stops_when_its_page_is_full(filled: Store, filters: FailureFilter, sort: FailureSort) -> None:
    """It has to test each row, and reads no more of them than it needs for a page."""
    if filled.dialect == "postgresql":
        pytest.skip("counts the steps of SQLite's programs")
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with filled.reading() as reading:
        driver: Any = connection_of(reading.jobs).connection.dbapi_connection
        driver.set_progress_handler(step, 10)
        page = reading.failures.page(filters, limit=5, sort=sort)
        driver.set_progress_handler(None, 0)
    assert len(page.items) == 5
    assert steps * 10 < ROWS


def test_the_costliest_of_a_short_period_come_from_the_index_on_time(filled: Store) -> None:
    if filled.dialect == "postgresql":
        pytest.skip("SQLite's planner has few statistics")
    with engine_of(filled).connect() as connection:
        for name, rows in MILLION.items():
            connection.exec_driver_sql("UPDATE sqlite_stat1 SET stat = ? WHERE idx = ?", (rows, f"ix_failures_{name}"))
        connection.commit()
    engine_of(filled).dispose()  # statistics are read with the schema
    with filled.reading() as reading, statements(filled) as seen:
        reading.failures.page(FailureFilter(since=NOON - timedelta(minutes=10)), sort="-gpu_hours_lost")
    with filled.reading() as reading:
        text = plan(reading, *seen[0])
    assert "COVERING INDEX ix_failures_ended_at_id" in text


def test_seals_read_the_verdicts_that_they_seal_and_no_others(filled: Store) -> None:
    with filled.unit_of_work() as work:
        assert work.verdict_seals.seal(NOON + timedelta(days=10_000)) > 0
    with filled.reading() as reading, statements(filled) as seen:
        assert reading.verdict_seals.check().intact > 0
    with filled.reading() as reading:
        for statement, parameters in seen:
            text = plan(reading, statement, parameters)
            assert set(scans(text)) <= {"SCAN seals"}, text


def test_no_other_query_of_the_pages_scans_a_table(filled: Store) -> None:
    with filled.reading() as reading, statements(filled) as seen:
        number = reading.failures.page(limit=1).items[0].id
        reading.failures.get(number)
        reading.jobs.attempts("orion", "e1")
        reading.jobs.attempts_of_jobs([("orion", "e1"), ("c7", "e2")])
        reading.jobs.known(["e1", "nothing"])
        reading.statistics.stats(NOON - timedelta(hours=1), NOON)
        reading.dead_letters.page()
        reading.tokens.find("secret")
    with filled.reading() as reading:
        for statement, parameters in seen:
            # Asked for one row of it, and for a page in the order of its row numbers.
            text = plan(reading, statement, parameters)
            assert set(scans(text)) <= {"SCAN retired_events", "SCAN dead_letters"}, text


def test_no_query_of_the_group_and_feedback_pages_scans_a_table(filled: Store) -> None:
    with filled.unit_of_work() as work:
        while work.groups.fold() is not None:
            pass
        number = work.groups.page(limit=1).items[0].id
        failure = work.failures.page(limit=1).items[0]
        work.groups.note(number, "ana", "comment", "words")
        for row in work.failures.page(limit=100).items:
            for kind in ("contest", "confirm", "correct", "import"):
                work.feedback.add(NewFeedback(row.id, "ana", kind, 1, row.side, row.cause))
    with engine_of(filled).connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    with filled.reading() as reading, statements(filled) as seen:
        for sort in ("-last_at", "-gpu_hours_lost"):
            reading.groups.page(sort=sort)
            reading.groups.page(GroupFilter(state="new"), sort=sort)
        reading.groups.page(GroupFilter(user="user7", hidden_from="ana"))
        reading.groups.get(number, actor="ana")
        reading.groups.of(["v1:3"])
        reading.groups.due()
        reading.groups.facts([number], window_h=6, past_d=28)
        reading.failures.page(FailureFilter(group=str(number)), limit=20)
        reading.failures.facets(FailureFilter())
        reading.failures.facets(FailureFilter(q="json", group=str(number)))
        reading.failures.solved(failure)
        reading.failures.newest()
        reading.failures.rows([failure.id])
        reading.feedback.of(failure.id)
        reading.feedback.label(failure.id)
        reading.feedback.labelled(open_only=True)
        reading.feedback.contests(NOON)
        reading.audit_samples.audit("2026-W47")
        reading.saved_views.of("ana", "/failures")
    with filled.reading() as reading:
        for statement, parameters in seen:
            # The words' own index is no table of ours; a group has a note or two.
            text = plan(reading, statement, parameters)
            assert set(scans(text)) <= {"SCAN group_mutes"}, (statement, text)


NAMES = ("side", "cause", "symptom", "category", "cluster", "queue", "team", "user", "node", "group", "status")


def test_the_cost_of_a_page_does_not_depend_on_the_stored_rows(filled: Store) -> None:
    """Measured: the rows that a page reads depend on its 20 rows and not on the stored rows."""
    asked: list[FailureFilter] = [FailureFilter(), FailureFilter(user="user7"), FailureFilter(side="user")]
    for name in NAMES:
        nothing: dict[str, Any] = {name: "nothing has this"}
        asked.append(FailureFilter(**nothing))
    asked += [FailureFilter(side="user", cause="nothing"), FailureFilter(status="hung", side="user", user="user7")]
    for filters in asked:
        with filled.reading() as reading, statements(filled) as seen:
            reading.failures.page(filters, limit=20)
        (statement, parameters), *_ = seen  # then, of a page that is not full, where to go on from
        with filled.reading() as reading:
            connection = connection_of(reading.jobs)
            if is_postgres(connection):
                # A table this small is read whole for what 21 look-ups cost; one that grows is what is asked about.
                connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
                explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
                # A join of two indices gives the failures of one user some times over, which is far from all rows.
                assert most_rows(explained.scalar_one()[0]["Plan"]) <= 8 * ceil(ROWS / 97), filters
            else:
                assert instructions(reading, filters) < 20 * 300, filters


def instructions(work: ReadSession, filters: FailureFilter) -> int:
    """The number of SQLite instructions for a page of 20; reading all rows of `filled` takes ten times as many."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 10
        return 0

    driver: Any = connection_of(work.jobs).connection.dbapi_connection
    driver.set_progress_handler(step, 10)
    work.failures.page(filters, limit=20)
    driver.set_progress_handler(None, 0)
    return steps


def most_rows(node: dict[str, Any]) -> float:
    """The most rows that any step of a plan returned or discarded, over all loops."""
    own: float = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return max([own, *(most_rows(child) for child in node.get("Plans", []))])


def test_no_query_about_nodes_scans_a_table(filled: Store) -> None:
    names = [f"gpu{number}" for number in range(89)]
    with filled.unit_of_work() as work:
        work.node_events.add(
            [
                NewNodeEvent(number.to_bytes(16, "big"), f"c{number % 23}", names[number % 89], NOON, "gpu_lost", "Xid")
                for number in range(1_000)
            ]
        )
        rows = [
            NodeRow(f"c{number % 23}", f"n{number}", 1.0, 0.5, 2.0, *(1.0,) * 2, *(1,) * 2, *(None,) * 5, NOON)
            for number in range(1_000)
        ]
        work.suspicion.put(rows)
        work.suspicion.add_days({("c1", f"n{number}", day): DaySums(1.0) for number in range(100) for day in range(10)})
        work.node_work.recheck(dict.fromkeys(range(1000), NOON))
    with engine_of(filled).connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    hour = timedelta(hours=1)
    windows = [Window("c7", name, NOON - hour, NOON) for name in (*names, "v1:3")]
    with filled.reading() as reading, statements(filled) as seen:
        reading.node_events.any_since(NOON)
        reading.node_events.within(windows)
        reading.node_events.page("c1", "gpu1", limit=5)
        reading.node_events.windows("c1", "gpu1", since=NOON)
        for sort in get_args(NodeSort):
            for cluster in (None, "c1"):
                page = reading.suspicion.page(limit=5, sort=sort, cluster=cluster)
                reading.suspicion.page(limit=5, sort=sort, cluster=cluster, cursor=page.next_cursor)
        reading.suspicion.of("c1", ["n1", "n24"])
        reading.suspicion.days([("c1", "n1")], since=3)
        reading.suspicion.stalest(NOON, limit=5)
        reading.suspicion.clusters()
        reading.suspicion.sums("c1")
        reading.failure_facts.on_nodes(windows)
        reading.failure_facts.alike(windows)
        reading.failure_facts.ids_on_nodes(windows)
        ids = reading.failure_facts.ids_on_nodes(windows)[:50]
        reading.failure_facts.ran(ids)
        reading.failure_facts.judged(ids)
        reading.failure_facts.bodies(ids)
        reading.failure_facts.weights(ids)
        reading.node_work.any_due()
        reading.node_work.any()
    assert len(seen) > 20
    with filled.reading() as reading:
        for statement, parameters in seen:
            text = plan(reading, statement, parameters)
            # The work is a queue: whoever looks whether there is any takes the first row.
            assert set(scans(text)) <= {"SCAN fleet_work"}, f"{statement}\n{text}"
