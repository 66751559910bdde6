"""A cut, emptied or rewritten audit log is found by its key and by the heads outside the database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from service.db.session import Store
from service.people.audit_heads import AuditHeadExport, AuditHeads
from service.people.repository.audit_log import chained
from service.sql.types import CHAIN_START
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW, make_world

KEY = b"k" * 32


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Callable[[bytes | None], Store]]:
    made = make_world(tmp_path)
    made.store.close()
    stores = []

    def opened(key: bytes | None) -> Store:
        stores.append(Store(f"sqlite:///{tmp_path}/store.sqlite3", clock=FrozenClock(NOW), audit_key=key))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def fill(store: Store, count: int = 5, who: str = "ana") -> None:
    for number in range(count):
        with store.unit_of_work() as work:
            work.audit_log.append(who, "verdict.corrected", f"failure/{number}")


def run(store: Store, statement: str) -> None:
    with engine_of(store).begin() as connection:
        connection.execute(text(statement))


def chain_again(store: Store, key: bytes | None) -> None:
    """What somebody with access to the database can do: compute all hashes again."""
    with engine_of(store).begin() as connection:
        before = CHAIN_START
        for row in connection.execute(text("SELECT * FROM audit_log ORDER BY id")).mappings().all():
            values: dict[str, Any] = dict(row)
            with store.reading() as reading:
                values["at"] = reading.audit_log.page(limit=1_000).items[0].at
            before = chained(before, values, key)
            change = text("UPDATE audit_log SET hash = :hash WHERE id = :id")
            connection.execute(change, {"hash": before, "id": row["id"]})


def exported(store: Store, folder: Path, key: bytes | None) -> AuditHeads:
    heads = AuditHeads(folder / "heads.jsonl", key)
    AuditHeadExport(store, heads, FrozenClock(NOW))()
    return heads


def problems(store: Store, heads: AuditHeads) -> str:
    with store.reading() as reading:
        return "; ".join(heads.problems(reading.audit_log)[1])


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM audit_log WHERE id > 3", "removed at its end"),
        ("DELETE FROM audit_log", "removed at its end"),
        ("UPDATE audit_log SET who = 'bob'", "rewritten"),
    ],
)
def test_a_cut_emptied_or_rewritten_log_does_not_agree_with_its_heads(
    database: Callable[[bytes | None], Store], tmp_path: Path, key: bytes | None, statement: str, found: str
) -> None:
    store = database(key)
    fill(store)
    heads = exported(store, tmp_path, key)
    assert problems(store, heads) == ""
    run(store, statement)
    chain_again(store, None)
    with store.reading() as reading:
        if key is None:  # the chain alone does not tell
            assert reading.audit_log.verify()[1] is None
    assert found in problems(store, heads)


def test_a_log_that_was_refilled_does_not_agree_either(
    database: Callable[[bytes | None], Store], tmp_path: Path
) -> None:
    store = database(KEY)
    fill(store)
    heads = exported(store, tmp_path, KEY)
    run(store, "DELETE FROM audit_log")
    fill(store, 9, who="bob")
    assert "rewritten" in problems(store, heads)


def test_without_the_key_rows_can_not_be_chained_again(database: Callable[[bytes | None], Store]) -> None:
    store = database(None)
    fill(store, 2)  # before there was a key
    keyed = database(KEY)
    fill(keyed, 3)
    with keyed.reading() as reading:
        assert reading.audit_log.verify() == (5, None)
    run(keyed, "UPDATE audit_log SET who = 'bob' WHERE id = 5")
    with keyed.reading() as reading:
        values = reading.audit_log.page(limit=1).items[0]
        before = reading.audit_log.hash_at(4)
    assert before is not None
    row = {"id": 5, "at": values.at, "who": "bob", "what": values.what, "subject": values.subject}
    run(keyed, "UPDATE audit_log SET hash = x'" + chained(before, row | _bytes(keyed)).hex() + "' WHERE id = 5")
    with keyed.reading() as reading:
        count, broken = reading.audit_log.verify()
    assert count == 4
    assert broken is not None
    with store.reading() as reading:
        _, broken = reading.audit_log.verify()
    assert broken is not None
    assert "FAULTLINE_AUDIT_KEY" in broken.detail


def _bytes(store: Store) -> dict[str, Any]:
    with engine_of(store).begin() as connection:
        row = connection.execute(text("SELECT before, after FROM audit_log WHERE id = 5")).mappings().one()
    return dict(row)


def test_heads_can_not_be_changed_without_the_key(database: Callable[[bytes | None], Store], tmp_path: Path) -> None:
    store = database(KEY)
    fill(store)
    heads = exported(store, tmp_path, KEY)
    file = tmp_path / "heads.jsonl"
    line = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps(line | {"entries": 3}) + b"\n{broken\n")
    assert problems(store, heads).count("changed, or written with another key") == 2
    file.unlink()
    assert "cannot be read" in problems(store, heads)


@pytest.mark.parametrize("entries", ["1e30", "123456789012345678901234567890", "-1", "true", '"1"', "[]", "NaN"])
def test_a_line_that_is_no_head_is_named_and_ends_nothing(
    database: Callable[[bytes | None], Store], tmp_path: Path, entries: str
) -> None:
    store, file = database(None), tmp_path / "heads"
    fill(store)
    file.write_text(f'{{"at": "2026", "entries": {entries}, "hash": "x"}}\n[1]\n"x"\n{"[" * 5000}\n', encoding="utf-8")
    with store.reading() as reading:
        number, problems = AuditHeads(file, None).problems(reading.audit_log)
    assert number == 4
    assert len(problems) == 4


def test_a_head_is_exported_once_and_the_file_is_private(
    database: Callable[[bytes | None], Store], tmp_path: Path
) -> None:
    store = database(KEY)
    export = AuditHeadExport(store, AuditHeads(tmp_path / "heads.jsonl", KEY), FrozenClock(NOW))
    export()
    assert not (tmp_path / "heads.jsonl").exists()
    fill(store)
    export()
    export()
    file = tmp_path / "heads.jsonl"
    assert len(file.read_bytes().splitlines()) == 1
    assert file.stat().st_mode & 0o077 == 0
