"""Stored decisions can be read, and replayed under another policy."""

from datetime import timedelta
from pathlib import Path

import pytest

from service.automation import decision_records
from service.automation.policy_replay import replay
from service.db.session import Store
from service.errors import NotFound
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.replay import compare
from tests.service.automation.world import AUTO, World, job, rules
from tests.service.web.world import NOW

XID = "NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus."
RESET = "OSError: connection reset by peer"
SHY = AUTO.replace("auto-1", "shy-1") + "\n[limits]\ninfra_per_lineage = 0\n"

AGREED = AUTO.replace("auto-1", "agreed-1") + (
    '\n[[rule]]\nname = "agreed code"\nwhen = { exit_code = [42] }\n'
    'decision = "stop"\nsays = "The program asks for no retry."\nsource = "site"\n'
)


def result(here: World) -> list[int]:
    outcome = here.tell(
        job("1", XID), job("2", RESET, user="bob"), job("3", "ModuleNotFoundError: No module named 'x'"), job("4")
    )
    return [one.failure_id for one in outcome.events if one.failure_id is not None]


def test_a_stored_decision_can_be_replayed(here: World, store: Store) -> None:
    for failure_id in result(here):
        with store.reading() as reading:
            past = decision_records.decision(reading, failure_id)
        again = advise(past.verdict, past.job, past.facts, rules())
        assert (again.decision, again.mode) == (past.decision, past.mode)


def test_missing_decisions_raise_not_found(store: Store) -> None:
    with store.reading() as reading, pytest.raises(NotFound):
        decision_records.decision(reading, 99)


def test_the_current_policy_changes_nothing_and_a_stricter_one_does(here: World, store: Store) -> None:
    ids = result(here)
    with store.reading() as reading:
        low, high = reading.decision_history.span() or (0, 0)
        stored = list(decision_records.past_decisions(reading.decision_history.read(low, high)))
    assert [one.failure_id for one in stored] == ids
    assert compare(stored, rules()).changed == 0
    found = compare(stored, rules(SHY))
    assert (found.decisions, found.fewer, found.unknown_fewer) == (3, 2, 2)
    assert {one.failure_id for one in found.shown} == set(ids[:2])


def test_a_rule_on_exit_codes_can_be_replayed(here: World, store: Store) -> None:
    here.tell(job("1", XID, exit_code=42), job("2", XID, exit_code=1, user="bob"))
    with store.reading() as reading:
        low, high = reading.decision_history.span() or (0, 0)
        stored = list(decision_records.past_decisions(reading.decision_history.read(low, high)))
    found = compare(stored, rules(AGREED))
    assert (found.decisions, found.changed, found.shown[0].rule) == (2, 1, "agreed code")


def test_the_outcome_of_a_resubmit_gives_its_gain_or_loss(here: World, store: Store) -> None:
    failed = here.clock.at
    run = {
        "gpus": 8,
        "started_at": (failed - timedelta(hours=3)).isoformat(),
        "checkpoint": {"at": (failed - timedelta(hours=1)).isoformat(), "step": 100},
    }
    [failure_id] = [one.failure_id for one in here.tell(job("1", XID, at=failed, **run)).events]
    [lease] = here.lease()
    here.done(lease, new_job_id="1-again")
    here.wait(hours=3)
    ended = here.clock.at
    here.tell(job("1-again", at=ended, gpus=8, started_at=(ended - timedelta(hours=2)).isoformat(), resubmit_of="1"))
    with store.reading() as reading:
        [past] = decision_records.past_decisions(reading.decision_history.read(failure_id or 0, failure_id or 0))
    assert (past.made, past.outcome, past.gpu_hours) == (True, "succeeded", 16.0)
    before_checkpoint = 8 * 2.0  # GPUs x hours that a start from the beginning would repeat
    found = compare([past], rules(SHY))
    assert (found.helped_lost, found.lost_gpu_hours) == (1, before_checkpoint)
    with store.reading() as reading:
        done = reading.weekly_action_counts.automated(failed, here.clock.at + timedelta(days=1))
    assert (done.by_outcome, done.rescued) == ({"succeeded": 1}, before_checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_database_is_replayed_in_parts(
    here: World, url: str, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.automation.policy_replay.PART", 1)
    result(here)
    file = tmp_path / "shy.toml"
    file.write_text(SHY)
    found = replay(url, policy.load(file), NOW - timedelta(days=1), workers)
    assert (found.policy, found.decisions, found.fewer) == ("shy-1/builtin-2", 3, 2)
    assert replay(url, policy.load(file), NOW + timedelta(days=1), workers).decisions == 0
