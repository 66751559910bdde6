"""The common behaviour of log storages: the database, a folder, a bucket of a real S3 server, and the tests' own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from classifiers.contracts import LogStream
from service.errors import NotFound
from service.log_storage import build as log_storage
from service.log_storage.log_bodies import DatabaseLogs, LogBodies, ObjectLogs
from service.log_storage.options import LogStorageOptions
from service.log_storage.records import LogsToStore, NewLogs, ObjectReference
from service.sql.packing import pack_streams
from service.telemetry import Telemetry
from tests.labs.object_storage import S3Server, s3_server
from tests.service.log_storage.fake_objects import FakeObjects

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
STREAMS = (
    LogStream("RuntimeError: CUDA error\n" * 100, 0, "gpu1", "stderr", 41, ((0, 41), (25, None))),
    LogStream("", 1, missing="has not arrived"),
    LogStream("ende \u00fc \U0001f4a5 \x00"),
)
OUTSIDE = ("folder", "bucket", "fake")
Make = Callable[[str], LogBodies]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as made:
        yield made


@pytest.fixture
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogBodies:
    if request.param == "database":
        return DatabaseLogs()
    if request.param == "fake":
        return ObjectLogs(FakeObjects(), Telemetry())
    url = f"file://{tmp_path}"
    if request.param == "bucket":
        server: S3Server = request.getfixturevalue("server")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        url = f"{server.bucket(f'logs-{uuid4().hex[:8]}')}/site/a"
    made = log_storage.build(LogStorageOptions(url, allow_http=True), Telemetry())
    made.check()
    return made


ALL = pytest.mark.parametrize("storage", ["database", *OUTSIDE], indirect=True)
OBJECTS = pytest.mark.parametrize("storage", OUTSIDE, indirect=True)


def new(job: str = "7", **changes: object) -> NewLogs:
    plain = NewLogs("orion", job, f"orion/{job}/0", ENDED, STREAMS)
    return replace(plain, **changes)  # type: ignore[arg-type]


def column(stored: LogsToStore) -> bytes | None:
    return stored.reference if isinstance(stored, ObjectReference) else pack_streams(stored)


@ALL
def test_logs_are_read_as_they_were_stored(storage: LogBodies) -> None:
    [stored] = storage.put([new()])
    assert storage.read(column(stored)) == STREAMS


@ALL
def test_the_logs_of_a_batch_come_back_in_its_order(storage: LogBodies) -> None:
    batch = [new(str(number), streams=(LogStream(f"log of {number}"),)) for number in range(40)]
    texts = [storage.read(column(one))[0].text for one in storage.put(batch)]
    assert texts == [f"log of {number}" for number in range(40)]


@ALL
def test_no_logs_are_no_logs(storage: LogBodies) -> None:
    [stored] = storage.put([new(streams=())])
    assert column(stored) is None
    assert storage.read(None) == ()


@ALL
def test_names_with_any_characters_do_not_mix(storage: LogBodies) -> None:
    names = ["../../etc/passwd", "a/b", "a_b", "\u00fc", "", "x" * 500, "%2e%2e"]
    batch = [new(name, cluster=name, streams=(LogStream(f"log of {name}"),)) for name in names]
    for name, stored in zip(names, storage.put(batch), strict=True):
        assert storage.read(column(stored))[0].text == f"log of {name}"


@ALL
def test_logs_in_the_database_are_read_whatever_the_setting(storage: LogBodies) -> None:
    assert storage.read(pack_streams(STREAMS)) == STREAMS


@OBJECTS
def test_storing_again_gives_the_same_object_and_other_logs_another(storage: LogBodies) -> None:
    [first], [again] = storage.put([new()]), storage.put([new()])
    [other] = storage.put([new(streams=STREAMS[:1])])
    assert first == again
    assert first != other
    assert storage.read(column(first)) == STREAMS
    assert storage.read(column(other)) == STREAMS[:1]
    assert storage.remove_before(date(2026, 11, 21)) == 2


@OBJECTS
def test_retention_removes_whole_days_also_objects_that_no_row_refers_to(storage: LogBodies) -> None:
    days = [datetime(2026, 11, day, 23, tzinfo=UTC) for day in (18, 19, 20)]
    columns = [column(one) for one in storage.put([new(str(day), ended_at=day) for day in days])]
    assert storage.remove_before(date(2026, 11, 20)) == 2
    assert storage.remove_before(date(2026, 11, 20)) == 0
    assert storage.read(columns[2]) == STREAMS
    for removed in columns[:2]:
        with pytest.raises(NotFound, match="no longer"):
            storage.read(removed)
