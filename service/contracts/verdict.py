"""verdict/1: the classification of one event and the advice on it, as stored, published and served.

`VerdictBody` is its only model. It is created from the classifiers' `Verdict` and the policy's `Advice`, and
converted back to a `Verdict` when later evidence updates a stored one.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field

from classifiers.contracts import ChainKind, ChainStep, ContextLine, Evidence, LogVerdict, Progress, Suspect, Verdict
from classifiers.taxonomy import Decision, PlatformSymptom, RetryOutlook, Role, Side
from service.contracts.advice import ActionKind, Advice, Mode
from service.contracts.verdict_wire import json_types, wire_of


class EvidenceLine(BaseModel):
    """One line that supports a verdict; `line` is 1-based in the log that was read, null if unknown."""

    rank: int | None = None
    node: str | None = None
    stream: str
    line: int | None = None
    text: str
    role: Role
    signature: str | None = None
    note: str | None = Field(default=None, description="why it is not used as evidence, null: it is used")

    def to_evidence(self) -> Evidence:
        """Convert to the classifiers' dataclass."""
        return Evidence(**dict(self))


class SuspectPart(BaseModel):
    """The most likely origin of the failure."""

    rank: int | None = None
    node: str | None = None
    gpu: int | None = None

    def to_suspect(self) -> Suspect:
        """Convert to the classifiers' dataclass."""
        return Suspect(self.rank, self.node, self.gpu)


class ProgressPart(BaseModel):
    """The last step and checkpoint that the logs show."""

    step: int | None = None
    checkpoint: str | None = None
    at: datetime | None = None


class MitigationPart(BaseModel):
    """One of the ten mitigations with concrete instructions; `score` is a probability."""

    code: str
    score: float
    text: str


class ActionPart(BaseModel):
    """The resubmission for a hook to carry out; `not_before` is RFC 3339, null: immediately."""

    action: ActionKind
    plan: Literal["elsewhere", "again"]
    exclude_nodes: list[str]
    resume_from: str | None
    changes: dict[str, Any]
    not_before: str | None
    ask_scheduler: bool = False


class ContextPart(BaseModel):
    """Evidence from the fleet for (`weight` > 0) or against a category; the weight is in nats of log odds."""

    kind: str
    text: str
    side: Side
    weight: float
    cause: str | None = None
    node: str | None = None
    at: datetime | None = None
    gpu: int | None = None

    def to_line(self) -> ContextLine:
        """Convert to the classifiers' dataclass."""
        return ContextLine(**dict(self))


class ChainPart(BaseModel):
    """One step from the beginning of the failure to the job's end, or what has nothing to do with it (`set_aside`)."""

    kind: ChainKind
    text: str
    title: str | None = Field(default=None, description="what it means; of set_aside, the reason")
    rank: int | None = None
    node: str | None = None
    ranks: int = Field(default=0, description="how many ranks are known to have printed such lines")
    lines: int = 0
    after_s: float | None = Field(default=None, description="seconds after the beginning")

    def to_step(self) -> ChainStep:
        """Convert to the classifiers' dataclass."""
        return ChainStep(**dict(self))


class LogVerdictPart(BaseModel):
    """The verdict from log and scheduler alone, without evidence from the fleet."""

    side: Side
    cause: str
    cause_top: list[str]
    confidence: float
    abstained: bool
    retry_outlook: RetryOutlook
    explanation: str
    suspect: SuspectPart | None = None
    uncorroborated: bool = False

    def to_log_verdict(self) -> LogVerdict:
        """Convert to the classifiers' dataclass."""
        suspect = None if self.suspect is None else self.suspect.to_suspect()
        return LogVerdict(**(dict(self) | {"cause_top": tuple(self.cause_top), "suspect": suspect}))


class VerdictBody(BaseModel):
    """verdict/1: the result of classification and of the built-in policy for one failure."""

    model_config = ConfigDict(extra="allow", title="verdict/1", populate_by_name=True)

    schema_: Literal["verdict/1"] = Field(alias="schema")
    event_id: str
    cluster: str
    job_id: str
    attempt: int | None
    side: Side
    cause: str
    cause_top: list[str]
    category: str | None
    symptom: str | None
    symptom_top: list[str]
    platform_symptom: PlatformSymptom
    confidence: float = Field(ge=0, le=1, description="of the side")
    abstained: bool
    evidence: list[EvidenceLine]
    suspect: SuspectPart | None
    missing: list[str]
    progress: ProgressPart | None
    fingerprint: str
    mitigations: list[MitigationPart]
    decision: Decision
    resubmit: bool
    reasons: list[str]
    exclude_nodes: list[str]
    policy: str
    rule: str = Field(default="", description="the rule that decided")
    mode: Mode = "advise"
    action: ActionPart | None = None
    incident: int | None = Field(default=None, description="the incident that holds the resubmission")
    held_by: str | None = None
    ask_whom: str | None = None
    changes: dict[str, Any] = Field(default_factory=dict, description="resource requests to change next time")
    figures: dict[str, float] = Field(default_factory=dict, description="of the cost gate")
    retry_outlook: RetryOutlook
    explanation: str
    weighed: list[tuple[str, float]]
    model: str
    rules: str
    disputed: bool = Field(default=False, description="the log and the nodes disagree, both strongly")
    uncorroborated: bool = Field(default=False, description="it rests on a node event that nothing else confirms")
    context: list[ContextPart] = Field(default_factory=list, description="evidence from nodes and other failures")
    own_frame: str | None = Field(default=None, description="where in the job's own code it began, as train.py:88")
    chain: list[ChainPart] = Field(default_factory=list, description="from the beginning of the failure to its end")
    log_said: LogVerdictPart | None = Field(default=None, description="null: there was no evidence from the fleet")

    @classmethod
    def from_verdict(
        cls, verdict: Verdict, advice: Advice, *, event_id: str, cluster: str, job_id: str, attempt: int | None
    ) -> Self:
        """Combine a verdict and the advice on it; numbers are rounded for storage."""
        return cls.model_validate(
            wire_of(verdict, advice, event_id=event_id, cluster=cluster, job_id=job_id, attempt=attempt)
        )

    def to_verdict(self) -> Verdict:
        """Return the verdict without its advice."""
        progress = self.progress
        return Verdict(
            side=self.side,
            cause=self.cause,
            cause_top=tuple(self.cause_top),
            category=self.category,
            symptom=self.symptom,
            symptom_top=tuple(self.symptom_top),
            platform_symptom=self.platform_symptom,
            confidence=self.confidence,
            abstained=self.abstained,
            retry_outlook=self.retry_outlook,
            fingerprint=self.fingerprint,
            explanation=self.explanation,
            model=self.model,
            rules=self.rules,
            evidence=tuple(line.to_evidence() for line in self.evidence),
            suspect=None if self.suspect is None else self.suspect.to_suspect(),
            missing=tuple(self.missing),
            progress=None if progress is None else Progress(progress.step, progress.checkpoint, progress.at),
            weighed=tuple(self.weighed),
            disputed=self.disputed,
            uncorroborated=self.uncorroborated,
            context=tuple(line.to_line() for line in self.context),
            log_verdict=None if self.log_said is None else self.log_said.to_log_verdict(),
            own_frame=self.own_frame,
            chain=tuple(step.to_step() for step in self.chain),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the verdict/1 object as JSON types; times as RFC 3339 text with a numeric offset."""
        content = self.model_dump(by_alias=True)
        try:
            found: dict[str, Any] = orjson.loads(orjson.dumps(content))  # a tenth of the time of `json_types`
        except orjson.JSONEncodeError:  # a lone surrogate, or an integer beyond 64 bits
            found = json_types(content)
        return found


def stored_verdict(body: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a stored verdict/1 object.

    Raises:
        pydantic.ValidationError: the object is not verdict/1.
    """
    return VerdictBody.model_validate(body).to_verdict()
