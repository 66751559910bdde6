"""Noise around a failure: complete sequences at harmless times, neutral lines before the failure, and nothing else."""

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.composition import log_noise, node_noise, noise, training_cases
from classifiers.composition.node_noise import Job
from classifiers.composition.noise import Noise, add_noise, complete
from classifiers.composition.training_cases import TrainingNoise
from classifiers.data import noise_data
from classifiers.data.labelled_cases import LabelledCase
from classifiers.data.noise_data import NoiseEntry, Use
from tests.classifiers.conftest import KINDS, labelled

START = datetime.fromisoformat("2026-11-20T00:00:00Z")
JOB = Job(START, START + timedelta(hours=10), ("gpu017", "gpu018"), "884120")
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    main()",
    "ValueError: shapes do not match",
]
EVENT: dict[str, Any] = {
    "status": "failed",
    "job_id": "884120",
    "nodes": ["gpu017", "gpu018"],
    "framework": "pytorch",
    "started_at": "2026-11-20T00:00:00Z",
    "ended_at": "2026-11-20T10:00:00Z",
    "logs": [{"rank": 0, "stream": "stderr", "tail": "\n".join(["start", "epoch 1", *TRACEBACK]) + "\n"}],
    "node_events": [{"node": "gpu018", "source": "kernel", "text": "true fault"}],
}
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def instants(events: list[dict[str, Any]]) -> list[datetime]:
    return [datetime.fromisoformat(one["at"]) for one in events]


def entries_of(reason: noise_data.Reason) -> list[NoiseEntry]:
    return [entry for entry in noise_data.node_entries() if entry.reason == reason]


@pytest.mark.parametrize("reason", noise_data.REASONS)
def test_every_entry_is_filled_and_at_a_harmless_time(reason: noise_data.Reason) -> None:
    for entry, seed in product(entries_of(reason), range(5)):
        events = node_noise.write(entry, JOB, random.Random(seed))
        times = instants(events)
        assert len(events) == len(entry.events), entry.id
        assert times == sorted(times), entry.id
        unfilled = [one for one in events if re.search(r"\$[a-z({]|[{][a-z]+[}]", one["text"].replace('{"', ""))]
        assert not unfilled, entry.id
        if entry.when == "before":
            assert times[-1] < JOB.started, entry.id
        if entry.when == "after":
            assert times[0] > JOB.ended, entry.id
        if entry.when == "early":
            assert times[-1] < JOB.started + timedelta(hours=7), entry.id
        if entry.reason == "recovered":
            assert not JOB.ended - timedelta(hours=1) < times[-1] <= JOB.ended, entry.id
        own = {one["node"] for one in events} & set(JOB.nodes)
        assert bool(own) == (entry.where == "own"), entry.id


@pytest.mark.parametrize("reason", noise_data.REASONS)
def test_values_are_the_same_in_all_events_of_an_entry(reason: noise_data.Reason) -> None:
    for entry in entries_of(reason):
        events = node_noise.write(entry, JOB, random.Random(3))
        for name in (r"GPU-[0-9a-f-]{36}", r"mlx5_\d+\b(?=.*port 1)", r"StepId=\d+", r"serial \d+"):
            found = {value for one in events for value in re.findall(name, one["text"])}
            assert len(found) <= 1 or entry.source == "kernel", (entry.id, found)


@pytest.mark.parametrize("count", [1, 10, 50, 200])
@pytest.mark.parametrize("use", ["fit", "measure"])
def test_the_number_of_events_is_as_asked(count: int, use: Use) -> None:
    events = node_noise.compose(JOB, random.Random(count), count, use)
    assert len(events) == count
    assert instants(events) == sorted(instants(events))


@pytest.mark.parametrize("reason", noise_data.REASONS)
def test_a_mix_of_one_reason(reason: noise_data.Reason) -> None:
    assert len(node_noise.compose(JOB, random.Random(1), 10, "measure", [reason])) >= 10


def test_a_short_run_has_no_early_faults() -> None:
    short = Job(START, START + timedelta(minutes=1), ("gpu017",), "7")
    with pytest.raises(ValueError, match="long_before_progress"):
        node_noise.compose(short, random.Random(1), 1, "fit", ["long_before_progress"])


def test_other_nodes_are_not_nodes_of_the_job() -> None:
    for nodes in (
        ("gpu017", "gpu018"),
        ("login",),
        ("a1.example.org", "a2.example.org"),
        tuple(f"n{i}" for i in range(9)),
    ):
        for seed in range(50):
            assert node_noise.other_name(nodes, random.Random(seed)) not in nodes


def test_the_same_seed_gives_the_same_event_and_the_given_one_stays() -> None:
    before = repr(EVENT)
    first, second = (add_noise(EVENT, random.Random(5), root_rank=0) for _ in range(2))
    assert first == second
    assert add_noise(EVENT, random.Random(6)) != first
    assert repr(EVENT) == before


def test_the_true_fault_stays_and_gets_a_time_just_before_the_end() -> None:
    noisy = add_noise(EVENT, random.Random(2), Noise(node_events=200))
    [fault] = [one for one in noisy["node_events"] if one["text"] == "true fault"]
    assert len(noisy["node_events"]) == 201
    assert fault["node"] == "gpu018"
    ended = datetime.fromisoformat(EVENT["ended_at"])
    assert timedelta(0) < ended - datetime.fromisoformat(fault["at"]) < timedelta(minutes=1)


def test_an_event_without_nodes_and_times_gets_them() -> None:
    bare = {"status": "failed", "logs": [{"rank": 0, "tail": "boom"}]}
    noisy = add_noise(bare, random.Random(1), Noise(node_events=20))
    case = build_case(noisy)
    assert len(case.job.nodes) == 1
    assert case.job.started_at is not None
    assert case.job.ended_at is not None
    assert case.job.started_at < case.job.ended_at
    assert len(case.node_events) == 20
    assert any(one.node in case.job.nodes for one in case.node_events)


def test_nodes_come_from_logs_where_the_event_has_none() -> None:
    event = {"status": "failed", "logs": [{"node": "b2", "tail": "x"}, {"node": "b1", "tail": "y"}]}
    assert complete(event, random.Random(1))["nodes"] == ["b2", "b1"]


def test_every_line_of_the_log_stays_in_order_and_the_failure_is_not_split() -> None:
    for seed in range(60):
        noisy = add_noise(EVENT, random.Random(seed), Noise(node_events=0))
        lines = [ANSI.sub("", line) for line in noisy["logs"][0]["tail"].rstrip("\n").split("\n")]
        place = next(number for number, line in enumerate(lines) if line.endswith(TRACEBACK[0]))
        assert len(lines[place:]) == len(TRACEBACK), lines
        assert all(line.endswith(own) for line, own in zip(lines[place:], TRACEBACK, strict=True))
        assert any(line.endswith("epoch 1") for line in lines[:place])


def test_added_lines_are_before_the_failure_and_carry_the_tag_of_the_process() -> None:
    text = "\n".join(f"[1,3]<stderr>:{line}" for line in ["start", "epoch 1", *TRACEBACK])
    setting = log_noise.Setting("measure", 12, "pytorch", START, 60.0, {"node": "gpu017", "job": "1", "peer": "2"})
    seen = 0
    for seed in range(30):
        lines = log_noise.disturb(text, setting, random.Random(seed)).split("\n")
        seen += sum("[1,3]<stderr>:" in line for line in lines) - 6
        assert lines[-1].rstrip("\x1b[0m").endswith("do not match")
    assert seen > 30


def test_nothing_is_put_between_a_code_line_and_its_error() -> None:
    text = "n1:     model.forward(x)\nn1: RuntimeError: boom"
    setting = log_noise.Setting("measure", 12, None, START, 60.0, {"node": "n1", "job": "1", "peer": "0"})
    for seed in range(40):
        lines = [ANSI.sub("", line) for line in log_noise.disturb(text, setting, random.Random(seed)).split("\n")]
        assert lines[-2].endswith("n1:     model.forward(x)")


@pytest.mark.parametrize("line", ["RuntimeError: it broke", "ERROR 12", "Process EXITED with 1", "Xid 79 on gpu-3"])
def test_a_line_may_be_about_the_failure_in_capital_letters_too(line: str) -> None:
    assert log_noise.neutral_end(["step 1", "step 2", line, "step 3"]) == 2


def test_an_empty_log_stays_empty() -> None:
    setting = log_noise.Setting("measure", 12, None, START, 60.0, {})
    assert log_noise.disturb("\n", setting, random.Random(1)) == "\n"


def test_reactions_are_added_for_another_rank_only() -> None:
    event: Mapping[str, Any] = {
        **EVENT,
        "logs": [{"rank": rank, "stream": "stderr", "tail": f"rank {rank} starts\n"} for rank in range(2)],
    }
    found = 0
    for seed in range(60):
        logs = add_noise(event, random.Random(seed), Noise(node_events=0), root_rank=1)["logs"]
        assert "reset by peer" not in logs[1]["tail"]
        found += "[rank0]" in logs[0]["tail"]
    assert found > 5


CASES = [labelled(kind, number) for kind in KINDS for number in range(12)]


def changed(cases: list[LabelledCase]) -> list[LabelledCase]:
    return [new for old, new in zip(CASES, cases, strict=True) if new.event != old.event]


def test_the_share_of_cases_gets_noise_and_all_keep_their_labels() -> None:
    cases = training_cases.with_noise(CASES, TrainingNoise(share=0.3))
    assert 0.15 < len(changed(cases)) / len(CASES) < 0.45
    assert [(case.id, case.kind, case.labels) for case in cases] == [
        (case.id, case.kind, case.labels) for case in CASES
    ]
    assert not changed(training_cases.with_noise(CASES, TrainingNoise(share=0.0)))


def test_the_raw_case_is_that_of_the_noisy_event() -> None:
    cases = changed(training_cases.with_noise(CASES, TrainingNoise(share=1.0, most_events=40)))
    counts = [len(case.raw.node_events) for case in cases]
    assert max(counts) <= 40
    assert len(set(counts)) > 10
    assert sum(count < 10 for count in counts) > len(counts) / 3


def test_reports_get_no_noise() -> None:
    reports = [replace(case, provenance={**case.provenance, "medium": "report"}) for case in CASES]
    assert training_cases.with_noise(reports, TrainingNoise(share=1.0)) == reports


def test_only_entries_for_training_are_used() -> None:
    measured = {
        event.text for entry in noise_data.node_entries("measure") for event in entry.events if "$" not in event.text
    }
    assert len(measured) > 30
    cases = training_cases.with_noise(CASES, TrainingNoise(share=1.0, most_events=noise.MOST_EVENTS))
    assert not measured & {event.text for case in cases for event in case.raw.node_events}
