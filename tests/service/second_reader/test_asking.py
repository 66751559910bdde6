"""Who is asked about what, how often, and that no answer changes a verdict or an action."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classifiers import taxonomy
from classifiers.contracts import Verdict
from service.contracts.event import from_object
from service.second_reader.asking import LEASE, SecondReadings
from service.second_reader.openai_endpoint import OpenAIEndpoint
from service.second_reader.opinion import NoReply, Opinion, Reply
from service.second_reader.question import Question
from service.second_reader.repository import SecondReading
from service.web.pages.failure.page import second_reading
from tests.service.second_reader.chat_endpoint import chat_endpoint
from tests.service.web.world import BY_WORD, HARDWARE, OPEN, SYSTEM, World, event, log, make_world

OPINION = Opinion("system", "SYS.5", 0.8, (1,), "A service was down.")


@dataclass
class Scripted:
    """Answers with one opinion, or with none."""

    opinion: Opinion | None = OPINION
    silent: bool = False
    asked: list[Question] = field(default_factory=list)

    def ask(self, asked: Question) -> Reply:
        self.asked.append(asked)
        if self.silent:
            raise NoReply("status 503")
        return Reply(self.opinion, "local-model", None if self.opinion else "side: wrong", 900, 40)


@dataclass
class Slow(Scripted):
    """Answers at the end of the longest permitted time."""

    world: World = field(kw_only=True)

    def ask(self, asked: Question) -> Reply:
        self.world.clock.sleep(300)
        return super().ask(asked)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def asking(world: World, reader: Any, limit: int = 20) -> SecondReadings:
    return SecondReadings(world.store, world.clock, world.services.telemetry, reader, hourly_limit=limit)


def fail(world: World, *jobs: str, tail: str = "Traceback\nSomeError: what is this") -> list[int]:
    """Failures of a kind each: undecided unless the tail has a word that the classifier knows."""
    ended = {"started_at": None, "ended_at": world.clock.now().isoformat()}
    outcome = world.services.ingest([from_object(event(job, logs=[log(tail)], **ended)) for job in jobs])
    return [one.failure_id for one in outcome.events if one.failure_id is not None]


def turn(world: World, task: SecondReadings) -> int:
    """One call of the periodic task, half a minute later."""
    world.clock.sleep(30)
    return task()


def reading(world: World, fingerprint: str) -> SecondReading | None:
    with world.store.reading() as session:
        return session.second_readings.of(fingerprint)


def age(world: World, hours: float) -> None:
    world.clock.sleep(hours * 3600)


def count(world: World, outcome: str) -> float:
    return float(world.services.telemetry.second_reader_requests.labels(outcome)._value.get())


def known_kinds(world: World) -> None:
    """Groups of the kinds of the tests, older than a day."""
    fail(world, "old-1")
    fail(world, "old-2", tail="ModuleNotFoundError: No module named 'x'")
    fail(world, "old-3", tail="NVRM: Xid 79")
    age(world, 48)


def test_an_undecided_kind_is_asked_about_once(world: World) -> None:
    reader = Scripted()
    task = asking(world, reader)
    fail(world, "1", "2")
    assert turn(world, task) == 1
    fail(world, "3")
    age(world, 2)
    assert turn(world, asking(world, reader)) == turn(world, task) == 0
    assert len(reader.asked) == 1
    found = reading(world, "1:open")
    assert found is not None
    assert (found.status, found.side, found.cause, found.reason) == (
        "answered",
        "system",
        "SYS.5",
        "A service was down.",
    )
    assert (found.prompt_tokens, found.completion_tokens) == (900, 40)
    assert count(world, "answered") == 1
    assert world.services.telemetry.second_reader_tokens.labels("prompt")._value.get() == 900


def test_a_sure_verdict_of_a_known_kind_is_not_asked_about_and_a_new_kind_is(world: World) -> None:
    known_kinds(world)
    reader = Scripted()
    task = asking(world, reader)
    fail(world, "4", tail="NVRM: Xid 79")
    assert turn(world, task) == 0
    fail(world, "5", tail="Stale file handle")
    assert turn(world, task) == 1
    assert reader.asked[0].fingerprint == "1:nfs"


def test_a_slow_reader_is_asked_no_longer_than_the_lease_lasts(world: World) -> None:
    fail(world, "1")
    fail(world, "2", tail="ModuleNotFoundError: No module named 'x'")
    fail(world, "3", tail="NVRM: Xid 79")
    fail(world, "4", tail="Stale file handle")
    reader = Slow(world=world)
    task = asking(world, reader)
    began = world.clock.now()
    assert turn(world, task) == 2
    assert world.clock.now() - began < LEASE
    assert turn(world, task) == 2
    assert len(reader.asked) == 4


@pytest.mark.parametrize("silent_at_first", [False, True])
def test_a_disputed_verdict_is_asked_about(world: World, silent_at_first: bool) -> None:
    known_kinds(world)
    reader = Scripted(silent=silent_at_first)
    task = asking(world, reader)
    [failure_id] = fail(world, "6", tail="NVRM: Xid 79")
    age(world, 0.1)
    with world.store.unit_of_work() as work:
        verdict = work.failures.get(failure_id).verdict
        assert verdict is not None
        work.failures.revise(failure_id, {**verdict, "disputed": True})
    if silent_at_first:
        assert turn(world, task) == 0
        reader.silent = False
    assert turn(world, task) == 1
    assert reader.asked[0].fingerprint == HARDWARE.fingerprint


def test_no_more_than_so_many_an_hour(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Scripted()
    task = asking(world, reader, limit=3)
    for number in range(5):
        monkeypatch.setitem(BY_WORD, "Xid", replace(HARDWARE, abstained=True, fingerprint=f"1:{number}"))
        fail(world, f"job-{number}", tail="NVRM: Xid 79")
    assert turn(world, task) == 3
    assert turn(world, task) == 0
    assert turn(world, asking(world, reader, limit=3)) == 0
    assert count(world, "hourly_limit") > 0
    age(world, 1.01)
    assert turn(world, task) == 2


def test_a_reader_that_does_not_answer_is_left_alone_and_asked_again_later(world: World) -> None:
    reader = Scripted(silent=True)
    task = asking(world, reader)
    fail(world, "1")
    for _ in range(4):
        turn(world, task)
    assert len(reader.asked) == 3
    assert count(world, "no_answer") == 3
    assert count(world, "circuit_open") >= 1
    assert reading(world, "1:open") is None
    reader.silent = False
    age(world, 0.02)
    assert turn(world, task) == 1
    assert reading(world, "1:open") is not None


@pytest.mark.parametrize("disputed", [False, True])
def test_a_kind_that_the_reader_gives_no_answer_to_holds_up_no_other(world: World, *, disputed: bool) -> None:
    known_kinds(world)

    class Partial(Scripted):
        def ask(self, asked: Question) -> Reply:
            self.silent = asked.fingerprint == HARDWARE.fingerprint
            return super().ask(asked)

    reader = Partial()
    task = asking(world, reader)
    fail(world, "1")
    age(world, 0.1)
    with patch.dict(BY_WORD, {"Xid": replace(HARDWARE, abstained=not disputed, disputed=disputed)}):
        fail(world, "2", tail="NVRM: Xid 79")  # newer than the other, or before it as it is disputed
    assert turn(world, task) == 0
    assert turn(world, task) == 1
    assert [one.fingerprint for one in reader.asked[:2]] == [HARDWARE.fingerprint, OPEN.fingerprint]


def test_questions_without_an_answer_count_for_the_limit_of_the_hour(world: World) -> None:
    reader = Scripted(silent=True)
    task = asking(world, reader, limit=2)
    fail(world, "1")
    for _ in range(4):
        turn(world, task)
    assert len(reader.asked) == 2
    age(world, 1.01)
    turn(world, task)
    assert len(reader.asked) == 3


def test_two_processes_do_not_ask_about_the_same_failure(world: World) -> None:
    fail(world, "1")
    entered, leave = threading.Event(), threading.Event()

    class Slow(Scripted):
        def ask(self, asked: Question) -> Reply:
            entered.set()
            leave.wait(60)
            return super().ask(asked)

    slow, other = Slow(), Scripted()
    thread = threading.Thread(target=asking(world, slow))
    thread.start()
    assert entered.wait(60)
    assert asking(world, other)() == 0
    leave.set()
    thread.join()
    assert (len(slow.asked), len(other.asked)) == (1, 0)


def test_a_kind_is_asked_about_again_after_its_process_was_killed(world: World) -> None:
    fail(world, "1")

    class Killed(Scripted):
        def ask(self, asked: Question) -> Reply:
            super().ask(asked)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        turn(world, asking(world, Killed()))
    reader = Scripted()
    task = asking(world, reader)
    assert turn(world, task) == 0, "the other process may still wait for its answer"
    age(world, 0.3)
    assert turn(world, task) == 1
    found = reading(world, "1:open")
    assert found is not None
    assert found.status == "answered"


def test_an_unusable_answer_is_counted_and_not_shown(world: World) -> None:
    [failure_id] = fail(world, "1")
    turn(world, asking(world, Scripted(opinion=None)))
    found = reading(world, "1:open")
    assert found is not None
    assert (found.status, found.side) == ("invalid", None)
    assert "Second reader" not in world.client().get(f"/failures/{failure_id}").text


OPINIONS = st.one_of(
    st.none(),
    st.just(Opinion(None, None, 0.9, (), "no idea")),
    st.builds(
        lambda code, sure: Opinion(taxonomy.load().side_of(code), code, sure, (1,), "resubmit at once"),
        st.sampled_from(sorted(taxonomy.load().causes)),
        st.floats(0, 1),
    ),
)


def state(world: World, failure_id: int) -> Mapping[str, Any]:
    """All that a hook or a person may act on."""
    with world.store.reading() as session:
        detail = session.failures.get(failure_id)
        return {
            "row": detail.row,
            "verdict": detail.verdict,
            "versions": detail.versions,
            "requests": session.requests.of_failures([failure_id]),
        }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    opinion=OPINIONS,
    verdict=st.sampled_from([OPEN, replace(HARDWARE, abstained=True), replace(SYSTEM, abstained=True)]),
)
@pytest.mark.slow
def test_no_opinion_changes_a_verdict_an_advice_or_a_request(
    world: World, opinion: Opinion | None, verdict: Verdict
) -> None:
    now = world.clock.now()
    kind = replace(verdict, fingerprint=f"1:{now.timestamp()}")
    labels = {"faultline/resubmit": "auto"}
    first, later = (
        from_object(event(f"{name} {now}", user=name, labels=labels, logs=[log("Traceback\nSomeError: what")]))
        for name in ("ana", "ben")
    )
    with patch.dict(BY_WORD, {"SomeError": kind}):
        failure_id = world.services.ingest([first]).events[0].failure_id
        assert failure_id is not None
        before = state(world, failure_id)
        reader = Scripted(opinion)
        assert turn(world, asking(world, reader, limit=3_600)) == len(reader.asked) == 1
        assert state(world, failure_id) == before
        wire = world.services.ingest([later]).events[0].verdict
    assert wire is not None
    for name in ("side", "cause", "confidence", "abstained", "decision", "resubmit", "mode", "action", "held_by"):
        assert wire[name] == before["verdict"][name]


def test_from_a_failure_to_the_page_with_a_real_endpoint(world: World) -> None:
    [failure_id] = fail(world, "1")
    with chat_endpoint() as endpoint:
        task = asking(world, OpenAIEndpoint(endpoint.url, "local-model", None, timeout_s=5.0))
        assert turn(world, task) == 1
    page = world.client().get(f"/failures/{failure_id}").text
    assert "Second reader" in page
    assert "A service was down." in page
    assert "local-model" in page
    assert "no automatic action depends on it" in page
    assert "Undecided" in page


def test_the_reason_is_for_those_who_may_see_the_failure_that_was_read(world: World) -> None:
    first, second = fail(world, "1")[0], fail(world, "2")[0]
    turn(world, asking(world, Scripted()))
    found = reading(world, "1:open")
    assert found is not None
    other = first if found.failure_id == second else second
    with world.store.reading() as session:
        row, own = session.failures.get(other).row, session.failures.get(found.failure_id).row
    hidden = second_reading(world.services, row, all_failures=False)
    assert hidden is not None
    assert (hidden.cause, hidden.reason) == ("SYS.5", None)
    for shown in (
        second_reading(world.services, row, all_failures=True),
        second_reading(world.services, own, all_failures=False),
    ):
        assert shown is not None
        assert shown.reason == "A service was down."
    assert second_reading(world.services, replace(row, source="person"), all_failures=True) is None
