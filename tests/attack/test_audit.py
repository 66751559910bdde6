"""A changed audit log is found by `faultline audit verify`, and other changed rows keep nobody from the rest.

As after the restore of a backup to which others could write.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import func, select, update

from service.__main__ import main
from service.clock import SystemClock
from service.contracts.event import from_object
from service.db.all_tables import metadata
from service.db.session import Store
from service.deliveries.records import NewDelivery, OutboxMessage
from service.errors import DamagedData
from service.failures.records import PendingLog
from service.groups.count_updater import GroupCountUpdater
from service.learning.retraining import stored_labels
from service.maintenance import Sealing
from service.people.audit_heads import AuditHeadExport, AuditHeads
from service.reports import document
from service.sql import packing
from service.sql.packing import pack, unpack
from service.sql.types import HIGHEST_ID
from service.web.sessions import COOKIE, LIFETIME
from tests.attack.server import set_environment
from tests.service.databases import copy_migrated, engine_of
from tests.service.web.world import NOW, World, event, lines, make_world

KEY = "k" * 40


def test_a_command_without_the_key_does_not_break_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its entry counted as altered for ever."""
    url = copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path)
    assert main(["token", "create", "first", "--purpose", "read"]) == 0, "there is no key yet"
    with closing(Store(url, audit_key=KEY.encode())) as store, store.unit_of_work() as work:
        work.audit_log.append("ana", "token.made", "token/a")
    for command in (["token", "create", "b", "--purpose", "read"], ["model", "rollback"], ["account", "disable", "x"]):
        assert main(command) == 2
        assert "FAULTLINE_AUDIT_KEY: expected the key of the service" in capsys.readouterr().err
    monkeypatch.setenv("FAULTLINE_AUDIT_KEY", KEY)
    assert main(["token", "create", "c", "--purpose", "read"]) == 0
    assert main(["audit", "verify"]) == 0


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("DELETE FROM audit_log WHERE id > 1", None),
        ("DELETE FROM audit_log", KEY),
        ("UPDATE audit_log SET who = 'nobody' WHERE id = 2", KEY),
        ("SELECT 1", None),
    ],
)
def test_a_changed_audit_log_is_found(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    new_database: Callable[[], str],
    statement: str,
    key: str | None,
) -> None:
    url, heads = new_database(), tmp_path / "heads"
    secret = None if key is None else key.encode()
    with closing(Store(url, audit_key=secret)) as store:
        for name in ("a", "b", "c"):
            with store.unit_of_work() as work:
                work.audit_log.append("ana", "token.made", f"token/{name}")
        AuditHeadExport(store, AuditHeads(heads, secret), SystemClock())()
        with engine_of(store).begin() as connection:
            connection.exec_driver_sql(statement)
    given = {"DATABASE_URL": url, "AUDIT_HEAD_FILE": str(heads), **({} if key is None else {"AUDIT_KEY": key})}
    set_environment(monkeypatch, tmp_path, **given)
    code = main(["audit", "verify"])
    error = capsys.readouterr().err
    assert code == (0 if statement == "SELECT 1" else 1), error
    assert ("audit log: " in error) == (statement != "SELECT 1")


def test_of_heads_that_cannot_be_read_none_agree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy_migrated(tmp_path / "attacked.sqlite3")
    set_environment(monkeypatch, tmp_path, AUDIT_HEAD_FILE=str(tmp_path / "heads"))
    assert main(["audit", "verify"]) == 1
    printed = capsys.readouterr()
    assert "exported heads: 0 of 0 agree" in printed.out
    assert "cannot be read" in printed.err


@pytest.fixture
def world(new_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    """A service with two failures of one cluster, each with a request of a person that waits for a hook."""
    made = make_world(tmp_path, new_database())
    with made.client() as client:
        assert client.post("/api/v1/events", content=lines(event("1"), event("2", user="bo"))).json()["accepted"] == 2
        for number in (1, 2):
            assert client.post(f"/api/v1/failures/{number}:resubmit").status_code == 200
    yield made
    made.store.close()


def damage(world: World, table: str, values: Mapping[str, Any], *, one: bool = True) -> None:
    """Change values of the first row of a table, or of all rows."""
    changed = metadata.tables[table]
    statement = update(changed).values(**values)
    if one:
        key = next(iter(changed.primary_key.columns))
        statement = statement.where(key == select(func.min(key)).scalar_subquery())
    with engine_of(world.store).begin() as connection:
        assert connection.execute(statement).rowcount > 0


def test_a_stored_value_that_unpacks_to_gigabytes_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of 30 KB may state and hold a gigabyte, which is taken at once."""
    text = b'"' + b"x" * 2_000 + b'"'
    bomb = zstandard.compress(text)
    unknown = zstandard.ZstdCompressor(write_content_size=False).compress(text)
    assert unpack(bomb) == "x" * 2_000
    monkeypatch.setattr(packing, "MOST_BYTES", len(text) - 1)
    for damaged in (bomb, unknown, bomb[:-5], b"\xff", b"{", b""):
        with pytest.raises(DamagedData):
            unpack(damaged)


def test_a_damaged_row_keeps_no_queue_from_going_on(world: World) -> None:
    """It was read again and again, and nothing after it ever was."""
    with world.store.unit_of_work() as work:
        for number in (1, 2):
            work.node_work.add("jobs", [number])
            work.outbox.add([OutboxMessage("failure.diagnosed", f"failure/{number}", {"number": number})])
        refs = ({"uri": "file:///x"},)
        work.pending_logs.add([PendingLog(one, one, refs, NOW, NOW + timedelta(hours=1), 0) for one in (1, 2)])
    for table, column in (("fleet_work", "body"), ("outbox", "payload"), ("pending_logs", "refs")):
        damage(world, table, {column: b"\xff"})
    with world.store.unit_of_work() as work:
        assert work.node_work.take(10)
        assert {one.attempt_id for one in work.pending_logs.due()} == {2}
        messages = work.outbox.lease("a", limit=100, seconds=60)
        assert messages
        assert 1 not in {one.id for one in messages}
        work.deliveries.add([NewDelivery(one.id, "hook") for one in messages])
    with engine_of(world.store).begin() as connection:
        damaged = update(metadata.tables["outbox"]).where(metadata.tables["outbox"].c.id == messages[0].id)
        connection.execute(damaged.values(payload=pack([1])))
    with world.store.unit_of_work() as work:
        leased = work.deliveries.lease("hook", "a", limit=100, seconds=60)
        assert [one.message_id for one in leased] == [one.id for one in messages[1:]]
    with world.store.reading() as reading:
        assert [one.message_id for one in reading.deliveries.page(state="given_up").items] == [messages[0].id]


def test_a_damaged_request_is_refused_and_the_others_are_leased(world: World) -> None:
    damage(world, "requests", {"body": pack({"exclude_nodes": 5})})
    with world.client() as client:
        [lease] = client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "orion"}).json()
        assert lease["job_id"] == "2"
        assert [one["job_id"] for one in client.get("/api/v1/resubmissions").json()["items"]] == ["2"]
        again = lines(event("1", attempt=1), event("3"))
        assert client.post("/api/v1/events", content=again).json()["accepted"] == 2, (
            "new failures of its job are stored"
        )
    with engine_of(world.store).connect() as connection:
        requests = metadata.tables["requests"]
        assert connection.execute(select(requests.c.state).where(requests.c.job_id == "1")).scalar_one() == "refused"


DAMAGES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "verdict": ("verdicts", {"body": pack({"evidence": 5})}, ("/failures/1", "/api/v1/failures/1")),
    "no verdict": ("verdicts", {"body": b"\x28\xb5\x2f\xfd"}, ("/failures/1", "/api/v1/failures/1?logs=true")),
    "event": ("logs", {"event": pack({"nodes": [[]], "logs": 5})}, ("/failures/1", "/api/v1/failures/1")),
    "report": ("reports", {"body": pack({"week": 5})}, ("/reports/2026-W46", "/api/v1/reports/2026-W46")),
    "no event": ("logs", {"event": pack(None)}, ("/failures/1", "/api/v1/failures/1")),
    "version": ("verdicts", {"source": "<script>"}, ("/api/v1/failures/1",)),
    "seal": ("seals", {"entries": pack({"a": 1})}, ("/model", "/api/v1/models")),
    "facts": ("advices", {"facts": pack([1])}, ()),
    "account": ("accounts", {"role": "<script>"}, ("/settings",)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_can_not_be_shown_says_so_and_other_pages_stay(world: World, name: str) -> None:
    table, values, paths = DAMAGES[name]
    with world.store.unit_of_work() as work:
        work.accounts.create("ana", "viewer", password="x")
        work.tokens.create("t", ["admin"])
    with world.client(world.token("admin")) as client:
        assert client.post("/api/v1/reports/2026-W46:publish").status_code == 200
        world.clock.sleep(3_600)
        Sealing(world.store, world.clock).seal_due()
        damage(world, table, values)
        for path in paths:
            answer = client.get(path)
            assert (answer.status_code, "Damaged data" in answer.text) == (500, True), path
        for path in ("/", "/failures", "/failures/2", "/api/v1/failures", "/automation", "/login", "/audit-log"):
            assert client.get(path).status_code == 200, path
        assert client.post("/api/v1/events", content=lines(event("4"))).json()["accepted"] == 1
        if name == "facts":
            replayed = client.post("/api/v1/policy:replay", json={"policy": 'version = "x"'})
            assert (replayed.status_code, replayed.json()["title"]) == (500, "Damaged data")
        if name == "report":
            assert client.post("/api/v1/reports/2026-W46:publish").json()["version"] == 2, "a new version replaces it"
            assert client.get("/reports/2026-W46").status_code == 200


def test_damaged_logs_dead_letters_and_audit_entries_are_shown_as_far_as_they_can_be_read(world: World) -> None:
    with world.client() as client:
        client.post("/api/v1/events", content=b"{broken")
        damage(world, "log_bodies", {"streams": pack([["text"]])})
        damage(world, "dead_letters", {"text": pack({"a": 1}), "errors": pack([5])})
        damage(world, "audit_log", {"after": b"\xff"})
        assert "damaged" in client.get("/failures/1").text
        assert client.get("/failures/1/logs/1/0").status_code == 500
        for path in ("/dead-letters", "/api/v1/dead-letters"):
            assert "POST /api/v1/events line 1" in client.get(path).text
        assert "can&#39;t be read" in client.get("/audit-log").text
        assert len(client.get("/api/v1/audit-log").json()["items"]) >= 2


def test_a_binding_or_role_that_can_not_be_read_opens_nothing(world: World) -> None:
    """Without its teams or clusters, an account or a token would see everything."""
    with world.store.unit_of_work() as work:
        account = work.accounts.create("ana", "viewer", password="x", teams=("speech",))
        session = work.sessions.log_in(account_id=account.id, lasts=LIFETIME)
        _, bound = work.tokens.create("bound", ["read"], teams=["speech"])
    for wrong in ("", "{}", "[1]", "null", "<script>"):
        damage(world, "accounts", {"teams": wrong})
        damage(world, "tokens", {"teams": wrong})
        with world.client() as browser, world.client(bound) as program:
            browser.cookies.set(COOKIE, session)
            for client in (browser, program):
                answer = client.get("/api/v1/failures")
                assert (answer.status_code, "items" in answer.json()) == (500, False), wrong


def test_an_audit_log_that_can_not_grow_says_so(world: World) -> None:
    """Else each change, and each login, was an error without a reason."""
    damage(world, "audit_log", {"id": HIGHEST_ID})
    with world.client() as client:
        answer = client.post("/api/v1/automation:stop")
        assert answer.status_code == 500
        assert "faultline audit verify" in answer.json()["detail"]


def test_no_restored_link_leads_to_another_site(world: World) -> None:
    with world.client() as client:
        made = client.post("/api/v1/reports/2026-W46:publish").json()
        for href in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
            part = {"title": "t", "outcome": "o", "href": href}
            read = document.from_wire({**made, "subtitle": "", "chart": [], "todo": [], "previous": [part]})
            assert read.previous[0].href is None
            damage(world, "groups", {"ticket": href}, one=False)
            shown = client.get("/groups/1").text
            assert f'href="{href}"' not in shown or href.startswith("https:")
        assert document.from_wire({**made, "previous": [{**part, "href": "/groups/1"}]}).previous[0].href == "/groups/1"


def test_invalid_stored_labels_train_no_layer(world: World) -> None:
    with world.client() as client:
        for number in (1, 2):
            client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "correct", "cause": "SYS.5"})
    damage(world, "labels", {"cause": "<script>"})
    assert [case.labels.best["cause"] for case in stored_labels(world.store, golden=False)] == ["SYS.5"]
    damage(world, "logs", {"event": pack({"logs": 7})}, one=False)
    assert stored_labels(world.store, golden=False) == []


def test_groups_are_counted_though_the_event_of_a_failure_is_damaged(world: World) -> None:
    handle = world.services.ingest._handle  # type: ignore[attr-defined]  # without counting at once
    handle([from_object(event("9", image="img"))])
    damage(world, "logs", {"event": b"\xff"}, one=False)
    assert GroupCountUpdater(world.store, world.clock)() > 0


def test_a_lost_counter_of_job_numbers_stops_no_intake(tmp_path: Path) -> None:
    """Each event had the number of a stored one: all became dead letters, and the worker stopped."""
    world = make_world(tmp_path)
    with world.client() as client:
        for number, statement in enumerate(("DELETE FROM counters", "UPDATE counters SET value = -5"), 1):
            assert client.post("/api/v1/events", content=lines(event(f"a{number}"))).json()["accepted"] == 1
            with engine_of(world.store).begin() as connection:
                connection.exec_driver_sql(statement)
            assert client.post("/api/v1/events", content=lines(event(f"b{number}"))).json()["accepted"] == 1
    world.store.close()
