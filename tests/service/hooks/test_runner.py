import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from service.hooks.action_journal import Journal
from service.hooks.lease_client import ServiceUnavailable
from service.hooks.request import Failed, Request, Settled
from service.hooks.runner import HookRunner, RunnerOptions
from tests.service.frozen_clock import FrozenClock
from tests.service.hooks import sample_requests
from tests.service.hooks.fakes import FakeScheduler, FakeService, Killed
from tests.service.hooks.sample_requests import NOW

DONE = Settled("done", "did it", "8")


def request(request_id: str = "r1", **changes: Any) -> Request:
    return sample_requests.request(request_id=request_id, **({"good_until": NOW + timedelta(minutes=2)} | changes))


class Hook:
    """One hook that can be killed and started again."""

    def __init__(self, folder: Path, *, can_look_up: bool = True, dry_run: bool = False) -> None:
        self.folder = folder
        self.clock = FrozenClock(NOW)
        self.service = FakeService()
        self.scheduler = FakeScheduler(can_look_up=can_look_up, kind="slurm" if can_look_up else "command")
        self._options = RunnerOptions("lab", dry_run=dry_run)
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.folder, self.scheduler.kind, self.clock)
        self.runner = HookRunner(self.service, self.scheduler, self.journal, self.clock, self._options)

    def restart(self) -> None:
        self.journal.close()
        self.start()

    def dies(self, at: int) -> None:
        self.scheduler.killed_at = at
        with pytest.raises(Killed):
            self.runner.round()
        self.restart()


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made_hook = Hook(tmp_path)
    yield made_hook
    made_hook.journal.close()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Hook]:
    made_hook = Hook(tmp_path, can_look_up=False)
    yield made_hook
    made_hook.journal.close()


def test_each_request_is_done_once_and_reported(hook: Hook) -> None:
    hook.service.waits = [request("r1"), request("r2")]
    assert hook.runner.round() == 2
    assert hook.runner.round() == 0
    assert hook.scheduler.done == ["r1", "r2"]
    assert hook.service.received == [("r1", DONE), ("r2", DONE)]


class JumpingClock(FrozenClock):
    """Time passes evenly; the clock on the wall is set back now and then."""

    jumps_s: float = 0.0

    def now(self) -> datetime:
        return self.at + timedelta(seconds=self.jumps_s)


@pytest.mark.parametrize("when", ["while it is leased", "between the steps"])
def test_a_clock_that_is_set_back_makes_no_lease_last_longer(
    hook: Hook, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another hook has the request when its lease has ended: both would act on the job."""
    clock = JumpingClock(NOW)
    hook.clock = clock
    hook.restart()
    hook.service.waits = [request()]

    def jump(*_arguments: object) -> None:
        clock.sleep(121)
        clock.jumps_s = -3600

    if when == "while it is leased":
        leases = hook.service.lease

        def lease(most: int, seconds: int) -> Sequence[Request]:
            found = leases(most, seconds)
            if found:
                jump()
            return found

        monkeypatch.setattr(hook.service, "lease", lease)
    else:
        monkeypatch.setattr(hook.scheduler, "_die", lambda at: jump() if at == 2 else None)
    hook.runner.round()
    hook.runner.round()
    assert hook.scheduler.done == []


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_killed_hook_asks_the_scheduler_and_brings_it_to_its_end(hook: Hook, at: int) -> None:
    hook.service.waits = [request()]
    hook.dies(at)
    hook.runner.round()
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]
    assert [settled.result for _, settled in hook.service.received if isinstance(settled, Settled)] == ["done"]
    assert hook.scheduler.looked[-1][1] == NOW


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_request_whose_result_cannot_be_queried_is_unknown_and_never_run_again(command: Hook, at: int) -> None:
    command.service.waits = [request()]
    command.dies(at)
    command.runner.round()
    command.service.waits = [request(lease_token="another", extra={"lease_count": 2})]
    command.runner.round()
    assert command.scheduler.done == (["r1"] if at == 3 else [])
    assert [settled.result for _, settled in command.service.received if isinstance(settled, Settled)] == [
        "unknown"
    ] * 2


def test_a_request_that_another_hook_may_have_started_is_not_run(command: Hook) -> None:
    command.service.waits = [request(extra={"lease_count": 2})]
    command.runner.round()
    assert not command.scheduler.done
    [(_, received)] = command.service.received
    assert isinstance(received, Settled)
    assert received.result == "unknown"


def test_one_job_does_not_end_the_hook_for_all_others(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that ends is started again, gets the same request first, and ends again."""
    inspect, execute = hook.scheduler.inspect, hook.scheduler.execute

    def poisoned(one: Request, **given: Any) -> Any:
        if one.request_id == "r1":
            raise OverflowError("a time that no calendar has")
        return inspect(one, **given)

    def half(one: Request, *given: Any) -> Any:
        if one.request_id == "r2":
            raise KeyError("odd")
        return execute(one, *given)

    monkeypatch.setattr(hook.scheduler, "inspect", poisoned)
    monkeypatch.setattr(hook.scheduler, "execute", half)
    monkeypatch.setattr(hook.scheduler, "maintain", Mock(side_effect=ZeroDivisionError))
    hook.service.waits = [request("r1"), request("r2"), request("r3")]
    assert hook.runner.round() == 3
    assert hook.scheduler.done == ["r3"]
    assert hook.service.received == [("r1", Failed("the job can't be inspected: OverflowError")), ("r3", DONE)]
    monkeypatch.undo()
    hook.runner.round()
    assert hook.scheduler.done == ["r3", "r2"]


def test_a_damaged_file_counts_as_started(command: Hook) -> None:
    (command.folder / "r1.json").write_bytes(b"what is this")
    command.service.waits = [request()]
    command.runner.round()
    assert not command.scheduler.done
    assert command.service.received[0][1] == Settled(
        "unknown", "an earlier attempt may have started, and its outcome is not known"
    )


def test_an_unreported_result_is_reported_later_and_not_done_again(hook: Hook) -> None:
    hook.service.waits = [request()]
    real_act = hook.scheduler.execute

    def act_while_the_service_dies(wanted: Request, lease: Any) -> Settled | Failed:
        outcome = real_act(wanted, lease)
        hook.service.away = True
        return outcome

    hook.scheduler.execute = act_while_the_service_dies  # type: ignore[assignment, method-assign]
    with pytest.raises(ServiceUnavailable):
        hook.runner.round()
    hook.restart()
    with pytest.raises(ServiceUnavailable):
        hook.runner.round()
    hook.service.away = False
    hook.service.waits = [request(lease_token="another")]
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]
    assert hook.service.received == [("r1", DONE), ("r1", DONE)]  # to the old lease, and to the new one


def test_nothing_is_started_after_the_lease(hook: Hook) -> None:
    hook.service.waits = [request(good_until=NOW)]
    hook.runner.round()
    assert not hook.scheduler.done
    assert not hook.journal.all()


@pytest.mark.parametrize(("at", "received"), [(1, []), (3, ["done"])])
def test_after_the_lease_a_killed_hook_only_tells_what_was_done(hook: Hook, at: int, received: list[str]) -> None:
    hook.service.waits = [request()]
    hook.dies(at)
    hook.clock.sleep(3600)
    hook.runner.round()
    assert [one.result for _, one in hook.service.received if isinstance(one, Settled)] == received
    assert hook.scheduler.done == (["r1"] if at == 3 else [])
    assert hook.journal.all() == []


def test_a_half_done_request_is_reported_after_its_lease_and_the_next_lease_completes_it(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.service.waits = [request()]
    hook.dies(2)
    hook.clock.sleep(3600)
    with caplog.at_level(logging.ERROR):
        hook.runner.round()
    assert "was interrupted" in caplog.text
    assert hook.scheduler.done == []
    hook.service.waits = [request(good_until=hook.clock.now() + timedelta(minutes=1))]
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]


def test_another_clusters_request_is_refused(hook: Hook) -> None:
    hook.service.waits = [request(cluster="orion")]
    hook.runner.round()
    assert hook.service.received == [("r1", Settled("refused", "this hook serves cluster lab"))]
    assert not hook.scheduler.looked


def test_a_request_before_its_time_goes_back(hook: Hook) -> None:
    hook.service.waits = [request(not_before=NOW + timedelta(minutes=5))]
    hook.runner.round()
    assert hook.service.received == [("r1", Failed("its start time has not been reached", 300.0))]


def test_a_scheduler_that_is_away_gives_the_request_back_untouched(hook: Hook) -> None:
    hook.scheduler.away = True
    hook.service.waits = [request()]
    hook.runner.round()
    assert hook.service.received == [("r1", Failed("no answer", 30.0))]
    assert not hook.journal.all()


@pytest.mark.parametrize("answer", [Settled("already_done", "by a person"), Failed("cleaning up", 10.0)])
def test_the_refusal_of_the_scheduler_is_reported(hook: Hook, answer: Settled | Failed) -> None:
    hook.scheduler.answers["r1"] = answer
    hook.service.waits = [request()]
    hook.runner.round()
    assert hook.service.received == [("r1", answer)]
    assert not hook.scheduler.done


def test_a_request_that_failed_may_come_again(hook: Hook) -> None:
    hook.scheduler.answers["r1"] = Failed("cleaning up", 10.0)
    hook.service.waits = [request()]
    hook.runner.round()
    hook.scheduler.answers.clear()
    hook.service.waits = [request()]
    hook.runner.round()
    assert hook.scheduler.done == ["r1"]


def test_the_result_of_a_withdrawn_request_is_reported_once(hook: Hook) -> None:
    hook.service.gone.add("r1")
    hook.service.waits = [request()]
    hook.runner.round()
    hook.runner.round()
    assert hook.service.received == [("r1", DONE)]


def test_without_a_journal_nothing_is_executed(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    real = hook.journal.write

    def full(intent: Any) -> None:
        if intent.state == "intended":
            raise OSError(28, "No space left on device")
        real(intent)

    monkeypatch.setattr(hook.journal, "write", full)
    hook.service.waits = [request()]
    hook.runner.round()
    assert not hook.scheduler.done
    assert hook.service.received == [("r1", Failed("the journal can't be written: No space left on device", 30.0))]


def test_a_dry_run_says_each_once_and_touches_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hook = Hook(tmp_path, dry_run=True)
    hook.service.waits = [request("r1"), request("r2", cluster="orion")]
    with caplog.at_level(logging.INFO):
        assert hook.runner.round() == 2
        assert hook.runner.round() == 0
    assert "dry run: r1: job 7: do it" in caplog.text
    assert (hook.scheduler.done, hook.service.received, hook.journal.all()) == ([], [], [])
    assert len(hook.service.waits) == 2
    hook.journal.close()


class OneRound:
    """Asked for the end after so many rounds; keeps how long it was to wait."""

    def __init__(self, rounds: int) -> None:
        self.waited: list[float] = []
        self._left = rounds

    def is_set(self) -> bool:
        return self._left <= 0

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= 1
        self.waited.append(timeout or 0)
        return self.is_set()


class Paused:
    def __init__(self, stop: OneRound) -> None:
        self._stop = stop

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)


def test_the_loop_waits_as_long_as_the_service_asks(hook: Hook) -> None:
    stop = OneRound(2)
    hook.service.away = True
    hook.runner.run(stop, Paused(stop))
    assert stop.waited == [7.0, 7.0]
    stop, hook.service.retry_after_s = OneRound(1), 0.0
    hook.runner.run(stop, Paused(stop))
    assert stop.waited == [1.0]  # and never round and round
    hook.service.away = False
    stop = OneRound(1)
    hook.runner.run(stop, Paused(stop))
    assert stop.waited == [15.0]
