"""The demo's month: believable jobs, no GPU held twice, logs that fit, and no line that states its own label."""

import random
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

import classifiers
from classifiers import taxonomy
from service.contracts.event import JobCompletion
from service.demo import scenarios
from service.demo.jobs import Job
from service.demo.simulation import GPUS_PER_NODE, Fleet, Simulation
from service.demo.story import DAYS, DEGRADED, Story
from service.formats.recognise import parse

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
STORY = Story(NOW)
BEGIN = NOW - timedelta(days=DAYS)
PLACEHOLDER = re.compile(r"<[^<>\n]+>")
TELLING = 12  # characters of a line between the values of the job
NEAR = 200  # characters: the next line of a text


@cache
def month() -> tuple[dict[str, Any], ...]:
    """The month without anybody who resubmits by a hook."""
    return tuple(Simulation(STORY, BEGIN).ends(NOW))


def ended(made: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(made["ended_at"])


def test_every_end_is_a_sound_event_of_one_scheduler_in_time_order() -> None:
    times = [ended(made) for made in month()]
    assert times == sorted(times)
    assert times[-1] <= NOW
    assert {made["scheduler"] for made in month()} == {"slurm"}
    assert {made["gpu_type"] for made in month()} == {"NVIDIA H100"}
    for made in month()[::20]:
        event = parse(orjson.dumps(made))
        assert isinstance(event, JobCompletion)
        assert event.started_at is not None
        assert not event.model_extra


def test_only_jobs_that_reach_their_time_limit_are_ended_by_it() -> None:
    reached = {True: 0, False: 0}
    for made in month():
        ran = (ended(made) - datetime.fromisoformat(made["started_at"])).total_seconds()
        assert ran < made["time_limit_s"] + 1 or made["status"] == "failed", "a hang may last longer"
        reached[ran >= made["time_limit_s"] - 1] += made["status"] == "timeout"
    assert reached[True] > 10
    assert not reached[False]


def test_no_two_jobs_hold_the_same_gpu() -> None:
    changes: defaultdict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for made in month():
        share = min(made["gpus"], GPUS_PER_NODE)
        assert len(set(made["nodes"])) == len(made["nodes"]) == -(-made["gpus"] // GPUS_PER_NODE)
        for node in made["nodes"]:
            changes[node] += [(datetime.fromisoformat(made["started_at"]), share), (ended(made), -share)]
    for of_node in changes.values():
        held = 0
        for _, change in sorted(of_node):  # at the same time the release comes first
            held += change
            assert held <= GPUS_PER_NODE


def test_the_month_has_retries_resubmits_preemptions_hangs_and_mostly_good_jobs() -> None:
    by_status = Counter(made["status"] for made in month())
    failed = sum(by_status[status] for status in ("failed", "timeout", "out_of_memory", "node_fail"))
    assert 0.05 < failed / len(month()) < 0.3
    assert by_status["preempted"] > 5
    assert by_status["cancelled"] > 5
    assert sum(made["attempt"] > 0 for made in month()) > 5
    assert sum("resubmit_of" in made for made in month()) > 30
    assert sum("Watchdog caught" in str(made.get("logs")) for made in month()) > 2
    outcome = {made["job_id"]: made["status"] for made in month()}
    again = Counter(outcome[made["job_id"]] == "succeeded" for made in month() if "resubmit_of" in made)
    assert again[True] > 10  # rescued
    assert again[False] > 10  # wasted


def test_the_outage_fails_jobs_of_many_users_within_its_time() -> None:
    begin, over = STORY.outage
    hit = [made for made in month() if "Stale file handle" in str(made.get("logs"))]
    assert len(hit) >= 8
    assert len({made["user"] for made in hit}) >= 4
    assert all(begin <= ended(made) <= over for made in hit)


def test_a_job_started_during_the_outage_fails_each_time_at_the_same_point() -> None:
    """An attempt that got past it would close the incident while jobs still fail, and they would open another one."""
    begin, over = STORY.outage
    job = Job(17, "vit", "ana", "vision", "train", 8, 5_400.0, begin)
    later = [begin + timedelta(minutes=minutes) for minutes in (13, 20, 30)]
    ends = [STORY.outage_of(job, start, over + timedelta(hours=1), random.Random(n)) for n, start in enumerate(later)]
    assert len({end.at - start for end, start in zip(ends, later, strict=True) if end is not None}) == 1
    assert None not in ends


def test_the_degraded_node_fails_until_its_repair() -> None:
    lost = [ended(made) for made in month() if f"'node': '{DEGRADED}', 'source': 'kernel'" in str(made)]
    assert len(lost) >= 8
    assert sum(at > STORY.repaired_at + timedelta(days=1) for at in lost) <= 1


def test_a_failure_of_the_first_days_returns_on_the_last() -> None:
    days = [(NOW - ended(made)).days for made in month() if "shared memory object" in str(made.get("logs"))]
    assert min(days) <= 1
    assert max(days) >= 25
    assert not [day for day in days if 5 < day < 20]


def test_logs_name_their_own_job_nodes_and_times() -> None:
    for made in month():
        text = " ".join(log["tail"] for log in made.get("logs", ()))
        assert "<" not in text.replace("<module>", "").replace("</torch_", "")
        named = {word.strip(",:()'") for word in text.split() if word.startswith("gpu0")}
        assert {name.partition(":")[0] for name in named} <= set(made["nodes"])
        assert all(log.get("node", made["nodes"][0]) in made["nodes"] for log in made.get("logs", ()))
        for word in text.split():
            if word[:4] == "2026" and "T" in word:
                at = datetime.fromisoformat(word).replace(tzinfo=UTC)
                assert timedelta(0) <= ended(made) - at <= timedelta(hours=1)


@pytest.mark.parametrize("scenario", scenarios.load().values(), ids=lambda one: one.name)
def test_no_line_states_its_own_label(scenario: scenarios.Scenario) -> None:
    axes = taxonomy.load()
    texts = f"{scenario.first} {scenario.others} {scenario.launcher} {scenario.kernel}".lower()
    titles = {entry.title for axis in (axes.causes, axes.mitigations) for entry in axis.values()}
    assert not [title for title in titles if len(title.split()) > 1 and title.lower() in texts]
    for word in ("root cause", "hardware fail", "user error", "faultline"):
        assert word not in texts


def test_a_requeued_job_is_the_same_job_and_avoids_the_excluded_node() -> None:
    simulation = Simulation(STORY, BEGIN)
    for made in simulation.ends(NOW - timedelta(days=20)):
        kernel = made.get("node_events")
        if kernel and simulation.resubmit(made["job_id"], (kernel[0]["node"],), simulation.now):
            break
    else:
        pytest.fail("no node fails")
    again = next(one for one in simulation.ends(NOW) if one["job_id"] == made["job_id"])
    assert again["attempt"] == made["attempt"] + 1
    assert kernel[0]["node"] not in again["nodes"]
    assert not simulation.resubmit("unknown", (), NOW)


def test_every_job_that_the_platform_fails_can_be_resubmitted() -> None:
    simulation, texts = Simulation(STORY, BEGIN), []
    for made in simulation.ends(NOW):
        tail = " ".join(log["tail"] for log in made.get("logs", ()))
        if made["status"] == "failed" and "Stale file handle" in tail:
            texts.append(simulation.resubmit(made["job_id"], (), simulation.now))
    assert len(texts) > 10, "the outage fails jobs"
    assert all(texts), "also those with a bug of their own that has not shown itself yet"


def test_a_fleet_gives_each_gpu_once() -> None:
    fleet = Fleet.of(2)
    assert fleet.take(16) == ("gpu001", "gpu002")
    assert fleet.take(1) == ()
    fleet.give_back(("gpu001", "gpu002"), 16)
    assert fleet.take(4, exclude={"gpu001"}) == ("gpu002",)
    assert fleet.take(4) == ("gpu002",)
    assert fleet.take(8, prefer="gpu002") == ("gpu001",)


def test_no_log_was_used_in_training() -> None:
    """Single lines are those of programs, and a launcher always writes the same. No two lines in a row are known."""
    kinds = sorted((Path(classifiers.__file__).parent / "data" / "kinds").rglob("*.toml"))
    corpus = "\n".join(file.read_text(encoding="utf-8") for file in kinds)
    assert len(corpus) > 1_000_000
    pairs = 0
    for scenario in scenarios.load().values():
        for text in (scenario.first, scenario.others):
            parts = [max(PLACEHOLDER.split(line), key=len).strip() for line in text.splitlines()]
            for one, following in pairwise(part for part in parts if len(part) >= TELLING):
                pairs += 1
                for found in re.finditer(re.escape(one), corpus):
                    assert following not in corpus[found.end() : found.end() + NEAR], (scenario.name, one, following)
    assert pairs > len(scenarios.load())
