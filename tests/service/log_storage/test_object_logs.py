"""Logs in objects when the storage fails: nothing is lost, nothing waits for long, and the reason is shown."""

import logging
from datetime import UTC, datetime

import pytest

from classifiers.contracts import LogStream
from service.errors import NotFound, Unavailable
from service.log_storage import log_bodies
from service.log_storage.log_bodies import DatabaseLogs, ObjectLogs
from service.log_storage.records import NewLogs, ObjectReference
from service.telemetry import Telemetry
from tests.service.log_storage.fake_objects import FakeObjects

STREAMS = (LogStream("Traceback\n" * 50, 0),)
NEW = NewLogs("orion", "7", "orion/7/0", datetime(2026, 11, 20, tzinfo=UTC), STREAMS)


class World:
    def __init__(self) -> None:
        self.objects, self.telemetry = FakeObjects(), Telemetry()
        self.logs = ObjectLogs(self.objects, self.telemetry)

    def stored(self) -> bytes:
        [stored] = self.logs.put([NEW])
        assert isinstance(stored, ObjectReference)
        return stored.reference

    def count(self, operation: str, outcome: str) -> float:
        labels = {"operation": operation, "outcome": outcome}
        return self.telemetry.registry.get_sample_value("faultline_log_storage_operations_total", labels) or 0.0

    def forget_the_pause(self) -> None:
        self.logs = ObjectLogs(self.objects, self.telemetry)


@pytest.fixture
def world() -> World:
    return World()


def test_an_object_is_compressed_and_its_key_names_day_cluster_and_job(world: World) -> None:
    world.stored()
    [(key, content)] = world.objects.content.items()
    assert key.startswith("2026-11-20/orion/7/")
    assert content[:4] == b"\x28\xb5\x2f\xfd"
    assert len(content) < 200


def test_logs_stay_in_the_database_while_the_storage_fails(world: World, caplog: pytest.LogCaptureFixture) -> None:
    labels = {"operation": "write", "outcome": "kept_in_database"}
    name = "faultline_log_storage_operations_total"
    assert world.telemetry.registry.get_sample_value(name, labels) == 0, "an alert asks for the increase"
    world.objects.down = True
    with caplog.at_level(logging.WARNING):
        assert world.logs.put([NEW]) == [STREAMS]
    assert world.count("write", "kept_in_database") == 1
    assert "not used for 30 s" in caplog.text
    calls = world.objects.calls
    assert world.logs.put([NEW] * 50) == [STREAMS] * 50
    assert world.objects.calls == calls, "no request while the storage is known to fail"
    world.objects.down = False
    world.forget_the_pause()
    assert isinstance(world.logs.put([NEW])[0], ObjectReference)


def test_a_storage_that_hangs_does_not_hold_up_a_batch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_bodies, "BATCH_S", 0.05)
    world.objects.proceed.clear()
    try:
        assert world.logs.put([NEW] * 40) == [STREAMS] * 40
        assert world.count("write", "kept_in_database") == 40
    finally:
        world.objects.proceed.set()


def test_an_unexpected_error_of_a_client_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(key: str, data: bytes) -> None:
        raise ValueError(f"{key} {len(data)}")

    monkeypatch.setattr(world.objects, "put", broken)
    assert world.logs.put([NEW]) == [STREAMS]


def test_a_log_that_cannot_be_read_gives_the_reason_without_details_of_the_client(world: World) -> None:
    reference = world.stored()
    world.objects.down = True
    with pytest.raises(Unavailable, match=r"^the log storage does not answer$"):
        world.logs.read(reference)
    assert world.count("read", "failed") == 1
    calls = world.objects.calls
    with pytest.raises(Unavailable):
        world.logs.read(reference)
    assert world.objects.calls == calls, "a page does not wait again"


def test_a_removed_or_changed_object_is_not_shown_as_the_log(world: World) -> None:
    reference = world.stored()
    [key] = world.objects.content
    world.objects.content[key] += b"x"
    with pytest.raises(NotFound, match="not the one that was stored"):
        world.logs.read(reference)
    del world.objects.content[key]
    with pytest.raises(NotFound, match="no longer"):
        world.logs.read(reference)
    assert world.count("read", "missing") == 2


@pytest.mark.parametrize("damaged", [b"{}", b'{"object": "../../etc/passwd", "size": 1, "sha256": "a"}'])
def test_a_damaged_reference_reads_no_other_object(world: World, damaged: bytes) -> None:
    with pytest.raises(NotFound, match="damaged"):
        world.logs.read(damaged)
    assert world.objects.calls == 0


def test_without_the_setting_a_reference_says_what_is_missing(world: World) -> None:
    with pytest.raises(Unavailable, match="FAULTLINE_LOG_STORE_URL"):
        DatabaseLogs().read(world.stored())


def test_a_storage_that_does_not_answer_at_the_start_is_only_reported(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.objects.down = True
    with caplog.at_level(logging.WARNING):
        world.logs.check()
    assert "log storage" in caplog.text
