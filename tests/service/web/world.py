"""A whole service over a real SQLite store: real parsing, logs and advice; only the classifier is written by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from zoneinfo import ZoneInfo

import orjson
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from limits import strategies
from limits.storage import memory

from classifiers.contracts import Evidence, RawCase, Suspect, Verdict
from service.automation.service import Automation
from service.clock import Clock
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.dead_letters.records import DeadLetter
from service.feedback.service import Feedback
from service.groups.count_updater import GroupCountUpdater
from service.learning.promotion import Promotions
from service.logs.fetch import LogFetcher
from service.messaging.batch_result import BatchHandler, BatchOutcome
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import FleetSettings
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.recommend.advise import Advisor
from service.telemetry import Telemetry
from service.web.app import create_app
from service.web.limits import caller_limits
from service.web.services import ModelInfo, Services
from tests.service.databases import copy_migrated
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HERE = "http://127.0.0.1:8080"
STOPPED_AT: Final = 1_800_000_010.0  # seconds since 1970: not at the end of a minute or an hour
GUESS = Verdict(
    side="user",
    cause="USER.1",
    cause_top=("USER.1", "USER.4"),
    category="EE.2",
    symptom=None,
    symptom_top=(),
    platform_symptom="crash",
    confidence=0.99,  # as sure as the classifier is of a module that is not there
    abstained=False,
    retry_outlook="futile",
    fingerprint="1:module",
    explanation="The job's own code, configuration or data made it fail. A library is not installed.",
    model="by hand 1",
    rules="by hand 1",
    weighed=(("modulenotfounderror", 2.5),),
)
HARDWARE = replace(
    GUESS,
    side="hardware",
    cause="HW.GPU.1",
    cause_top=("HW.GPU.1", "HW.NODE.1"),
    category=None,
    confidence=0.97,
    retry_outlook="helps_elsewhere",
    fingerprint="1:xid",
    explanation="Node gpu018 lost GPU 3 (Xid 79). The other ranks failed because of it.",
    suspect=Suspect(rank=1, node="gpu018", gpu=3),
    missing=("rank 3 said nothing",),
)
SYSTEM = replace(
    GUESS,
    side="system",
    cause="SYS.5",
    cause_top=("SYS.5",),
    category=None,
    confidence=0.72,
    retry_outlook="helps",
    fingerprint="1:nfs",
    explanation="A service that the job needs was down or too busy for a while.",
)
OPEN = replace(
    GUESS, confidence=0.41, abstained=True, fingerprint="1:open", explanation="The evidence does not settle it."
)
BY_WORD = {"Xid": HARDWARE, "Stale file handle": SYSTEM, "ModuleNotFoundError": GUESS}


PANIC = "Kernel panic"  # node events with these words are the beginning


class ByWord:
    """A classifier that knows three words, and is undecided about everything else."""

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        return [self._one(case) for case in cases]

    def _one(self, case: RawCase) -> Verdict:
        found, telling = OPEN, ""
        evidence = []
        for stream in case.streams:
            for number, line in enumerate(stream.text.splitlines(), stream.first_line or 1):
                word = next((word for word in BY_WORD if word in line), None)
                if word is not None and not telling:
                    found, telling = BY_WORD[word], line
                    evidence.append(Evidence(line, "initiating", stream.rank, stream.node, stream.stream, number, word))
                elif "Error" in line or "<" in line:
                    evidence.append(Evidence(line, "cascade", stream.rank, stream.node, stream.stream, number))
        led = [
            Evidence(one.text, "initiating", None, one.node, "node") for one in case.node_events if PANIC in one.text
        ]
        return replace(found, evidence=(*led, *evidence))


@dataclass
class World:
    store: Store
    clock: FrozenClock
    services: Services
    app: FastAPI

    def client(self, token: str | None = None, *, base_url: str = HERE) -> TestClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return TestClient(self.app, base_url=base_url, headers=headers, follow_redirects=False)

    def token(self, *scopes: str, name: str = "", clusters: Sequence[str] = (), teams: Sequence[str] = ()) -> str:
        with self.store.unit_of_work() as work:
            _, secret = work.tokens.create(name or "-".join(scopes), scopes, clusters=clusters, teams=teams)
        return secret


class Folding:
    """Handles batches, and counts the groups at once: a page asked right after shows them."""

    def __init__(self, handle: BatchHandler, fold: GroupCountUpdater) -> None:
        self._handle = handle
        self._fold = fold

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        done = self._handle(events, dead)
        self._fold()
        return done


def web_services(store: Store, ingest: BatchHandler, clock: Clock, telemetry: Telemetry, **given: Any) -> Services:
    """Services of the web with the built-in policy, and no model, unless others are given."""
    zone = ZoneInfo(given.get("timezone", "UTC"))
    parts: dict[str, Any] = {
        "automation": Automation(store, policy.built_in(), clock, telemetry),
        "feedback": Feedback(store, clock, Advisor(policy.built_in(), clock), zone=zone),
        "promotions": Promotions(store, ""),
        "node_event_intake": NodeEventIntake(store, clock, FleetSettings()),
    }
    return Services(store, ingest, clock, telemetry, **(parts | given))


def by_hand(name: str, rules: str, manifest: Mapping[str, Any] | None = None) -> ModelInfo:
    """A model that is always the same."""
    return ModelInfo(lambda: name, lambda: rules, manifest or {})


def make_world(folder: Path, url: str | None = None, **changes: Any) -> World:
    """`url`: a migrated database; None: a new SQLite file in the folder."""
    clock = FrozenClock(NOW)
    store = Store(url or copy_migrated(folder / "store.sqlite3"), clock=clock)
    telemetry = Telemetry()
    handle = diagnose_with(
        DiagnosisTools(
            store,
            LogFetcher(()),
            ByWord(),
            policy.built_in(),
            clock,
            telemetry,
            automation=Automation(store, policy.built_in(), clock, telemetry),
        )
    )
    given: dict[str, Any] = {
        "store": store,
        "ingest": Folding(handle, GroupCountUpdater(store, clock)),
        "clock": clock,
        "telemetry": telemetry,
        "settings": {"database_url": "postgresql://***@db/faultline", "timezone": "UTC"},
        "model": by_hand("by hand 1", "by hand 1", {"name": "by hand", "digests": {"model": "abc"}}),
    }
    services = web_services(**(given | changes))
    return World(store, clock, services, create_app(services))


def stop_rate_windows(patch: pytest.MonkeyPatch) -> None:
    """Let no window of a rate limit pass during a test: the library counts by the real clock."""
    stopped = SimpleNamespace(time=lambda: STOPPED_AT)
    for module in (memory, strategies, caller_limits):
        patch.setattr(module, "time", stopped)


def event(job: str = "7", **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "schema": "job-completion/1",
        "cluster": "orion",
        "job_id": job,
        "attempt": 0,
        "name": "vit-g pretrain",
        "user": "ana",
        "team": "vision",
        "queue": "gpu",
        "status": "failed",
        "exit_code": 1,
        "gpus": 8,
        "nodes": ["gpu018"],
        "started_at": (NOW - timedelta(hours=3)).isoformat(),
        "ended_at": (NOW - timedelta(minutes=30)).isoformat(),
        "logs": [log("importing\nModuleNotFoundError: No module named 'flash_attn'\nbye")],
    }
    return plain | changes


def log(tail: str, rank: int | None = 0, **changes: Any) -> dict[str, Any]:
    return {"rank": rank, "node": "gpu018", "stream": "stderr", "tail": tail} | changes


def lines(*events: Mapping[str, Any] | bytes) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else orjson.dumps(one) for one in events)
