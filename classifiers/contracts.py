"""The words both halves share: what is known of a failed job, what was found in it, and what is said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from classifiers.taxonomy import PlatformSymptom, RetryOutlook, Role, Side

# How an attempt ends, in the words of job-completion/1.
STATUSES: Final = (
    "succeeded", "failed", "timeout", "out_of_memory", "node_fail", "preempted", "evicted", "hung", "cancelled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogStream:
    """What was read of one stream of one process.

    `first_line` is the number (1-based) that the first line of `text` has in the stream, None if unknown. Where
    nothing could be read `text` is empty and `missing` says why. A text made of several windows of a file lists the
    windows in `windows` as (offset in characters of `text`, line number there or None), first window included.
    """

    text: str
    rank: int | None = None
    node: str | None = None
    stream: str = "stderr"
    first_line: int | None = 1
    windows: tuple[tuple[int, int | None], ...] = ()
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One line that a node, its devices or its agents said (kernel, DCGM, kubelet ...)."""

    text: str
    at: datetime | None = None
    node: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the scheduler knows of one finished attempt; `status` is one of `STATUSES`.

    Times are aware, durations in seconds; None is not known.
    """

    status: str
    exit_code: int | None = None
    signal: int | None = None
    scheduler: str | None = None
    reason: str | None = None
    message: str | None = None
    framework: str | None = None
    command: str | None = None
    image: str | None = None
    name: str | None = None
    user: str | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    nodes: tuple[str, ...] = ()
    time_limit_s: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    restart_count: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawCase:
    """A failed attempt before extraction: facts, redacted logs, node events."""

    job: JobFacts
    streams: tuple[LogStream, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line that speaks for the verdict.

    `line` is 1-based in the stream as the file has it, None if unknown; `signature` is the id of the catalogue entry
    that knows the line. A node event has stream "node", the scheduler's own words have stream "scheduler".
    """

    text: str
    role: Role
    rank: int | None = None
    node: str | None = None
    stream: str = "stderr"
    line: int | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """The process, node and device where the failure most likely began; each None if not told."""

    rank: int | None = None
    node: str | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The last step and checkpoint that the logs show."""

    step: int | None = None
    checkpoint: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A failed attempt after extraction: what the classifier reads. `evidence` is ordered, most telling first."""

    job: JobFacts
    evidence: tuple[Evidence, ...]
    suspect: Suspect | None = None
    progress: Progress | None = None
    missing: tuple[str, ...] = ()
    ranks_seen: int = 0


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One thing that the fleet says of a failure: a node's event, or others that failed.

    `side` is whom it speaks for (`weight` > 0) or against (< 0), in nats of log odds; `kind` is an entry of
    classifiers/evidence_weights.toml; `at` is when it was.
    """

    kind: str
    text: str
    side: Side
    weight: float
    cause: str | None = None
    node: str | None = None
    at: datetime | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What the job's own log and scheduler said, before the fleet's evidence was heard: one of the two sides shown."""

    side: Side
    cause: str
    cause_top: tuple[str, ...]
    confidence: float
    abstained: bool
    retry_outlook: RetryOutlook
    explanation: str
    suspect: Suspect | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What classification says of one case.

    `confidence` is the calibrated probability (0..1) that `side` is right. An abstained verdict keeps its best guess.
    `cause_top` and `symptom_top` hold at most three codes, best first. `weighed` names what spoke for the cause
    (feature, weight), strongest first.

    `context` is what the fleet's evidence added, strongest first, and `log_said` the verdict without it (None where
    there was none). `disputed`: the log speaks for one side and the nodes for another, both strongly.
    """

    side: Side
    cause: str
    cause_top: tuple[str, ...]
    category: str | None
    symptom: str | None
    symptom_top: tuple[str, ...]
    platform_symptom: PlatformSymptom
    confidence: float
    abstained: bool
    retry_outlook: RetryOutlook
    fingerprint: str
    explanation: str
    model: str
    rules: str
    evidence: tuple[Evidence, ...] = ()
    suspect: Suspect | None = None
    missing: tuple[str, ...] = ()
    progress: Progress | None = None
    weighed: tuple[tuple[str, float], ...] = ()
    disputed: bool = False
    context: tuple[ContextLine, ...] = ()
    log_verdict: LogVerdict | None = None
