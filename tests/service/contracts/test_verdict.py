"""verdict/1: one model that holds everything of a verdict, on the wire and back."""

from dataclasses import fields
from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import ContextLine, Evidence, LogVerdict, Progress, Suspect, Verdict
from service.contracts.advice import Action, Advice, Mitigation
from service.contracts.verdict import VerdictBody, stored_verdict
from service.contracts.verdict_wire import wire_of

TEXT = st.text(max_size=20)
MAYBE_TEXT = st.none() | TEXT
MAYBE_COUNT = st.none() | st.integers(0, 1_000)
SIDES = st.sampled_from(["hardware", "system", "user"])
OUTLOOKS = st.sampled_from(["helps", "helps_elsewhere", "after_repair", "futile"])
INSTANTS = st.none() | st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
SUSPECTS = st.none() | st.builds(Suspect, rank=MAYBE_COUNT, node=MAYBE_TEXT, gpu=MAYBE_COUNT)
PROBABILITIES = st.integers(0, 10_000).map(lambda number: round(number / 10_000, 4))
WEIGHTS = st.integers(-9_000, 9_000).map(lambda number: round(number / 1_000, 3))


def tuples(of: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=most).map(tuple)


EVIDENCE = st.builds(
    Evidence,
    text=TEXT,
    role=st.sampled_from(["initiating", "cascade", "teardown", "context"]),
    rank=MAYBE_COUNT,
    node=MAYBE_TEXT,
    stream=TEXT,
    line=MAYBE_COUNT,
    signature=MAYBE_TEXT,
)
CONTEXT = st.builds(
    ContextLine,
    kind=TEXT,
    text=TEXT,
    side=SIDES,
    weight=WEIGHTS,
    cause=MAYBE_TEXT,
    node=MAYBE_TEXT,
    at=INSTANTS,
    gpu=MAYBE_COUNT,
)
LOG_VERDICTS = st.none() | st.builds(
    LogVerdict,
    side=SIDES,
    cause=TEXT,
    cause_top=tuples(TEXT),
    confidence=PROBABILITIES,
    abstained=st.booleans(),
    retry_outlook=OUTLOOKS,
    explanation=TEXT,
    suspect=SUSPECTS,
)
VERDICTS = st.builds(
    Verdict,
    side=SIDES,
    cause=TEXT,
    cause_top=tuples(TEXT),
    category=MAYBE_TEXT,
    symptom=MAYBE_TEXT,
    symptom_top=tuples(TEXT),
    platform_symptom=st.sampled_from(["crash", "hang", "slowdown", "unavailability"]),
    confidence=PROBABILITIES,
    abstained=st.booleans(),
    retry_outlook=OUTLOOKS,
    fingerprint=TEXT,
    explanation=TEXT,
    model=TEXT,
    rules=TEXT,
    evidence=tuples(EVIDENCE),
    suspect=SUSPECTS,
    missing=tuples(TEXT),
    progress=st.none() | st.builds(Progress, step=MAYBE_COUNT, checkpoint=MAYBE_TEXT, at=INSTANTS),
    weighed=tuples(st.tuples(TEXT, WEIGHTS)),
    disputed=st.booleans(),
    context=tuples(CONTEXT),
    log_verdict=LOG_VERDICTS,
)
ADVICE = Advice(
    mitigations=(Mitigation("M1", 0.51239, "drain the node"),),
    decision="resubmit_after",
    resubmit=True,
    reasons=("platform fault on one node",),
    policy="default 1",
    exclude_nodes=("gpu018",),
    action=Action(exclude_nodes=("gpu018",), not_before=datetime(2026, 11, 20, 12, tzinfo=UTC)),
    mode="act",
    rule="node fault",
    figures={"cost": 1.23456},
)


def wire(verdict: Verdict) -> dict[str, object]:
    return VerdictBody.from_verdict(
        verdict, ADVICE, event_id="e", cluster="c", job_id="ns/Job/x", attempt=None
    ).to_wire()


@given(VERDICTS)
def test_a_verdict_comes_back_from_its_json_as_it_was(verdict: Verdict) -> None:
    assert stored_verdict(orjson.loads(orjson.dumps(wire(verdict)))) == verdict


@given(VERDICTS)
def test_it_is_written_as_the_schema_writes_it(verdict: Verdict) -> None:
    written = wire_of(verdict, ADVICE, event_id="e", cluster="c", job_id="ns/Job/x", attempt=None)
    assert orjson.dumps(written) == orjson.dumps(wire(verdict))
    assert list(written) == [one.alias or name for name, one in VerdictBody.model_fields.items()]


@given(VERDICTS)
def test_reading_and_writing_an_object_again_changes_nothing(verdict: Verdict) -> None:
    body = orjson.loads(orjson.dumps(wire(verdict)))
    assert VerdictBody.model_validate(body).to_wire() == body


def test_every_field_of_the_dataclass_is_on_the_wire() -> None:
    renamed = {"log_verdict": "log_said"}
    compared = [one.name for one in fields(Verdict) if one.compare]  # `measures` is no part of a verdict
    assert {renamed.get(name, name) for name in compared} <= set(VerdictBody.model_fields)


@given(VERDICTS)
def test_advice_is_rounded_and_its_times_have_a_numeric_offset(verdict: Verdict) -> None:
    body = wire(verdict)
    assert body["mitigations"] == [{"code": "M1", "score": 0.5124, "text": "drain the node"}]
    assert body["figures"] == {"cost": 1.235}
    assert body["action"] == {
        "action": "requeue",
        "plan": "again",
        "exclude_nodes": ["gpu018"],
        "resume_from": None,
        "changes": {},
        "not_before": "2026-11-20T12:00:00+00:00",
        "ask_scheduler": False,
    }
