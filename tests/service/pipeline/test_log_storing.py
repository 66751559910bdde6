"""Failures whose logs are in objects: stored exactly once, revised, classified again, exported, removed."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from service.db.session import Store
from service.errors import Unavailable
from service.failures.records import FailureDetail
from service.feedback import label_export
from service.feedback.records import Labels, NewFeedback
from service.log_storage.log_bodies import DatabaseLogs, ObjectLogs
from service.logs.fetch import LogFetcher
from service.maintenance import Retention, RetentionDays
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.pipeline.stored_cases import read_cases
from service.recommend import policy
from service.telemetry import Telemetry
from tests.service.databases import copy_migrated
from tests.service.frozen_clock import FrozenClock
from tests.service.log_storage.fake_objects import FakeObjects
from tests.service.pipeline.diagnosis import diagnose_with, revision_with
from tests.service.pipeline.test_diagnose import NOW, ReadingClassifier, Shelf, event, only_failure


class World:
    def __init__(self, folder: Path) -> None:
        self.objects, self.clock = FakeObjects(), FrozenClock(NOW)
        self.store = Store(copy_migrated(folder / "store.sqlite3"), clock=self.clock)
        self.forget_the_pause()
        self.shelf = Shelf()
        self.diagnose = self.with_logs(self.shelf)
        self.revision = revision_with(self.tools(self.shelf))

    def forget_the_pause(self) -> None:
        self.store.log_bodies = ObjectLogs(self.objects, Telemetry())

    def with_logs(self, logs: Shelf | LogFetcher) -> Diagnose:
        return diagnose_with(self.tools(logs))

    def tools(self, logs: Shelf | LogFetcher) -> DiagnosisTools:
        return DiagnosisTools(self.store, logs, ReadingClassifier(), policy.built_in(), self.clock, Telemetry())

    def texts(self) -> list[str]:
        return [stream.text for stream in only_failure(self.store).logs[0].streams]

    def detail(self) -> FailureDetail:
        return only_failure(self.store)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.store.close()


def test_the_log_is_in_one_object_and_the_row_refers_to_it(world: World) -> None:
    world.diagnose([event()])
    assert len(world.objects.content) == 1
    assert world.texts() == ["ModuleNotFoundError in 7"]


def test_secrets_are_removed_before_a_log_leaves(world: World) -> None:
    secret = "ghp_" + "a1B2" * 9
    with_secret = event(logs=[{"rank": 0, "tail": f"export GITHUB_TOKEN={secret}\nboom"}])
    world.with_logs(LogFetcher(()))([with_secret])
    [text] = world.texts()
    assert "boom" in text
    assert secret not in text


def test_a_crash_between_object_and_commit_and_the_same_batch_again_store_it_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "unit_of_work", killed)
        with pytest.raises(KeyboardInterrupt):
            world.diagnose([event()])
    assert len(world.objects.content) == 1
    world.diagnose([event()])
    world.diagnose([event()])
    assert len(world.objects.content) == 1
    assert world.texts() == ["ModuleNotFoundError in 7"]


def test_an_event_is_stored_while_the_storage_fails(world: World) -> None:
    world.objects.down = True
    world.diagnose([event()])
    assert world.texts() == ["ModuleNotFoundError in 7"]
    assert world.objects.content == {}


def test_logs_that_arrive_later_join_the_stored_ones_but_not_while_these_cannot_be_read(world: World) -> None:
    late = event(logs=[{"rank": 0, "tail": "first"}, {"rank": 1, "uri": "file:///late"}])
    world.diagnose([late])
    world.shelf.texts["file:///late"] = "second"
    world.clock.at += timedelta(minutes=1)
    world.objects.down = True
    assert world.revision.revise_by_late_logs() == 0
    world.objects.down = False
    world.forget_the_pause()
    world.clock.at += timedelta(minutes=10)
    assert world.revision.revise_by_late_logs() == 1
    assert world.texts() == ["first", "second"]


def test_failures_are_not_classified_again_without_their_logs(world: World) -> None:
    world.diagnose([event()])
    failure = world.detail().row.id
    [case] = read_cases(world.store, [failure])
    assert case.case.streams[0].text == "ModuleNotFoundError in 7"
    world.objects.down = True
    with pytest.raises(Unavailable, match="log storage"):
        read_cases(world.store, [failure])
    world.objects.down = False
    world.forget_the_pause()
    world.objects.content.clear()
    assert read_cases(world.store, [failure]) == []


def test_logs_of_several_failures_are_read_at_the_same_time(world: World) -> None:
    world.diagnose([event(str(number)) for number in range(8)])
    with world.store.reading() as reading:
        failures = [row.id for row in reading.failures.page().items]
    world.objects.together = threading.Barrier(8, timeout=10)
    cases = read_cases(world.store, failures)
    assert [case.detail.row.id for case in cases] == failures
    assert {case.case.streams[0].text for case in cases} == {f"ModuleNotFoundError in {number}" for number in range(8)}


def test_failures_whose_logs_retention_removed_keep_their_verdict_and_those_without_logs_are_read(world: World) -> None:
    world.store.log_bodies = DatabaseLogs()
    world.diagnose([event("7"), event("8", logs=[])])
    with world.store.reading() as reading:
        failures = {row.job_id: row.id for row in reading.failures.page().items}
    assert len(read_cases(world.store, list(failures.values()))) == 2
    world.store.purge(logs_before=NOW)
    [case] = read_cases(world.store, list(failures.values()))
    assert case.detail.row.id == failures["8"]


def test_labels_are_not_exported_without_their_logs(world: World) -> None:
    world.diagnose([event()])
    failure = world.detail().row.id
    with world.store.unit_of_work() as work:
        work.feedback.add(NewFeedback(failure, "ana", "confirm", 1, "user", "USER.1", Labels("user", "USER.1")))
    [case] = label_export.cases(world.store)
    assert "ModuleNotFoundError" in str(case["event"]["logs"])
    world.objects.down = True
    with pytest.raises(Unavailable):
        list(label_export.cases(world.store))


def test_retention_removes_objects_with_the_logs_and_those_of_lost_transactions(world: World) -> None:
    world.diagnose([event("7")])
    world.objects.content["2026-11-01/orion/lost/0000000000000000-00000000000000000000000000000000.json.zst"] = b""
    retention = Retention(world.store, world.clock, RetentionDays(rows=0, verdicts=0, logs=5, done=0))
    purged = retention.run_if_due()
    assert purged is not None
    assert purged.log_objects == 1
    assert world.texts() == ["ModuleNotFoundError in 7"]
    world.clock.at += timedelta(days=6)
    world.objects.down = True
    with pytest.raises(Unavailable):
        retention.run_if_due()
    world.objects.down = False
    purged = retention.run_if_due()
    assert purged is not None
    assert (purged.log_objects, world.objects.content) == (1, {})
    assert world.texts() == []
