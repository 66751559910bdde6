import gzip
from pathlib import Path

import pytest

from service.contracts.event import MAX_EVENT_BYTES
from service.errors import Unavailable
from service.messaging.file_replay import FileReplay
from tests.service.messaging.fakes import Clock, Database, event, parse


@pytest.fixture
def database() -> Database:
    return Database()


def replay(database: Database, **settings: str) -> FileReplay:
    return FileReplay(parse, database, clock=Clock(), cluster="orion", **settings)  # type: ignore[arg-type]


def test_every_line_is_stored_and_what_is_bad_is_kept_with_its_place(tmp_path: Path, database: Database) -> None:
    plain, zipped = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(b"\n".join([event("a"), b"{", event("b"), b'{"skip": 1}', b"", event("a")]))
    zipped.write_bytes(gzip.compress(event("c", status="over") + b"\n" + event("d", cluster="lyra") + b"\n"))
    summary = replay(database).run([str(plain), str(zipped)])
    assert database.jobs() == {"a", "b", "d"}
    assert database.places() == {f"replay {plain}:2", f"replay {zipped}:1"}
    assert summary.text() == "3 accepted, 1 duplicate, 0 conflict, 1 skipped, 2 bad"
    assert {stored.cluster for stored in database.events.values()} == {"orion", "lyra"}


def test_lines_are_stored_in_batches(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"\n".join(event(f"j{number}") for number in range(1_201)))
    replay(database).run([str(path)])
    assert database.batches == [500, 500, 201]


def test_a_missing_file_is_reported_and_the_others_are_read(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "there.jsonl"
    path.write_bytes(event("a"))
    summary = replay(database).run([str(tmp_path / "absent.jsonl"), str(path)])
    assert database.jobs() == {"a"}
    assert "absent.jsonl: No such file" in summary.broken[0]


def test_a_line_too_long_for_an_event_is_a_dead_letter(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * (MAX_EVENT_BYTES + 1_000) + b"\n" + event("a"))
    assert replay(database).run([str(path)]).bad == 1
    [letter] = database.letters.values()
    assert letter.reason == f"larger than {MAX_EVENT_BYTES} bytes"
    assert len(letter.text) < 100_000
    assert database.jobs() == {"a"}


def test_an_event_that_nothing_can_handle_counts_as_bad(tmp_path: Path, database: Database) -> None:
    database.poison = lambda stored: stored.job_id == "b"
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(event(name) for name in "abc"))
    assert replay(database).run([str(path)]).bad == 1
    assert database.jobs() == {"a", "c"}


def test_waits_a_while_for_the_database_and_then_says_so(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(event("a"))
    database.down = 5
    replay(database).run([str(path)])
    assert database.jobs() == {"a"}
    database.down = 10_000
    with pytest.raises(Unavailable):
        replay(database).run([str(path)])
