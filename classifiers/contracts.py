"""The records that library and service share: the facts of a failed job, the evidence found in it, the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from classifiers.taxonomy import PlatformSymptom, RetryOutlook, Role, Side

# How an attempt ends: the values of `status` in the event schema job-completion/1.
STATUSES: Final = (
    "succeeded", "failed", "timeout", "out_of_memory", "node_fail", "preempted", "evicted", "hung", "cancelled",
)  # fmt: skip


# The kinds of `logs[].kind` in the event schema. Dumps and diagnostic files are streams named for their kind.
FLIGHT_RECORDER: Final = "flight_recorder"
DIAGNOSTIC_KINDS: Final = ("torchrun_error", "nvidia_smi", "dmesg", "sacct", "nccl_ras", "py_spy")
LOG_KINDS: Final = ("log", FLIGHT_RECORDER, *DIAGNOSTIC_KINDS)
CollectiveProblem = Literal[
    "missing_ranks", "mismatched_operations", "mismatched_types", "mismatched_sizes", "no_dump", "incomplete"
]


@dataclass(frozen=True, slots=True)
class LogStream:
    """The part of one stream of one process that was read.

    Attributes:
        text: the text; empty where nothing could be read.
        rank: the rank of the process, None if unknown.
        node: its node, None if unknown.
        stream: the name of the stream.
        first_line: the 1-based number of the first line of `text` in the stream, None if unknown.
        windows: where `text` is made of several windows of a file: for each window, the first one included, its offset
            in `text` in characters and the number of its first line, None if unknown.
        missing: why nothing could be read, None if something was.
        is_unwrapped: whether the envelopes of its lines were taken off (`extraction.envelopes`).
    """

    text: str
    rank: int | None = None
    node: str | None = None
    stream: str = "stderr"
    first_line: int | None = 1
    windows: tuple[tuple[int, int | None], ...] = ()
    missing: str | None = None
    is_unwrapped: bool = False


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One line of a node, its devices or its agents (kernel, DCGM, kubelet ...)."""

    text: str
    at: datetime | None = None
    node: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The scheduler's facts on one finished attempt; `status` is one of `STATUSES`.

    Times are aware, durations in seconds; None means unknown.
    """

    status: str
    job_id: str | None = None
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
class CollectiveFailure:
    """A collective that the ranks of a process group did not complete together.

    Attributes:
        problem: `missing_ranks` did not join it, `no_dump`: ranks left no dump while the others wait, `incomplete`: all
            joined; else the ranks disagree in what they called.
        group: the name of the process group.
        sequence: the number of the collective in its group.
        operation: the name of the operation.
        ranks: the ranks that differ from the others; empty if the dumps do not tell.
        waiting: the ranks that had not completed it.
        text: the finding as a sentence.
    """

    problem: CollectiveProblem
    group: str
    sequence: int
    operation: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CollectiveEvidence:
    """The findings of the Flight Recorder dumps of a job, the first failure first; and which dumps can't be read."""

    failures: tuple[CollectiveFailure, ...]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagnosticFinding:
    """One thing that a diagnostic file shows (`classifiers.diagnostic_files`).

    Attributes:
        kind: the kind of the file.
        text: the finding as a sentence.
        role: what it is to the failure.
        rank: the rank that it names, None if none.
        node: the node that it names, None if none.
        gpu: the device that it names, None if none.
    """

    kind: str
    text: str
    role: Role
    rank: int | None = None
    node: str | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class DiagnosticEvidence:
    """The findings of the diagnostic files of a job, and which files can't be read."""

    findings: tuple[DiagnosticFinding, ...]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoodRun:
    """The last run of the same job that succeeded: its lines as hashes (`classifiers.last_good_run`)."""

    lines: frozenset[bytes]
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class RawCase:
    """A failed attempt before extraction: facts, redacted logs, node events, the last good run of the same job.

    `node_events_cut`: the number of node events that were left out, as others are nearer to the end of the job.
    """

    job: JobFacts
    streams: tuple[LogStream, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()
    collectives: CollectiveEvidence | None = None
    good_run: GoodRun | None = None
    diagnostics: DiagnosticEvidence | None = None
    node_events_cut: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of evidence.

    Attributes:
        text: the line, cut to 1,000 characters.
        role: what the line is to the failure.
        rank: the rank that printed it, None if unknown.
        node: the node that printed it, None if unknown.
        stream: the name of its stream; "node" for a node event, "scheduler" for the scheduler's message.
        line: its 1-based number in the file of the stream, None if unknown.
        signature: the id of the catalogue entry that matches it, None without one.
        note: why it is not used as evidence, None if it is.
    """

    text: str
    role: Role
    rank: int | None = None
    node: str | None = None
    stream: str = "stderr"
    line: int | None = None
    signature: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """The process, node and device where the failure most likely began; each None if unknown."""

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
    """A failed attempt after extraction, as the classifier reads it; `evidence` is ordered, most telling first.

    `missing` lists what was expected and not found; `ranks_seen` counts the ranks with a stream or a line.
    `uncorroborated`: the beginning is a node event that neither log, scheduler nor a second source supports.
    """

    job: JobFacts
    evidence: tuple[Evidence, ...]
    suspect: Suspect | None = None
    progress: Progress | None = None
    missing: tuple[str, ...] = ()
    ranks_seen: int = 0
    uncorroborated: bool = False


ChainKind = Literal["beginning", "consequence", "teardown", "end", "set_aside"]


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One step from the beginning of a failure to its end, or what has nothing to do with it.

    Attributes:
        kind: what the step is to the failure.
        text: its first line; of the end, how the scheduler says that the job ended.
        title: what the line means, by the catalogue; of what was set aside, the reason; None if not known.
        rank: the rank that printed it first, None if unknown.
        node: its node, None if unknown.
        ranks: how many ranks are known to have printed such lines.
        lines: how many lines it stands for; 0 for the end.
        after_s: seconds after the beginning, None if not known.
    """

    kind: ChainKind
    text: str
    title: str | None = None
    rank: int | None = None
    node: str | None = None
    ranks: int = 0
    lines: int = 0
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One item of the fleet's evidence: a node event, or failures of other jobs.

    Attributes:
        kind: the code of an entry of classifiers/fleet_evidence/evidence_weights.toml.
        text: the evidence in words.
        side: the side that it is evidence for or against.
        weight: nats of log odds, positive for the side and negative against it.
        cause: the cause that it is evidence for, None if none.
        node: the node that it is of, None if none.
        at: when it was, None if unknown.
        gpu: the device that it is of, None if none.
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
    """The verdict by the job's own log and scheduler alone, without the fleet's evidence."""

    side: Side
    cause: str
    cause_top: tuple[str, ...]
    confidence: float
    abstained: bool
    retry_outlook: RetryOutlook
    explanation: str
    suspect: Suspect | None = None
    uncorroborated: bool = False


@dataclass(frozen=True, slots=True)
class InputMeasures:
    """How well a case is covered by what the classifier knows; no part of the verdict.

    Attributes:
        unknown: share (0..1) of the words and pairs of words of the evidence that the model does not know.
        lines: lines of the log that are evidence.
        unmatched: those that no signature matches.
        versions: software with its version, as the log names it, such as `NCCL 2.20.5`.
    """

    unknown: float
    lines: int
    unmatched: int
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The classification of one case.

    `confidence` is the calibrated probability (0..1) that `side` is right. An abstained verdict keeps its best guess.
    `cause_top` and `symptom_top` hold at most three codes, best first. `weighed` lists the features that count for the
    cause with their weights, strongest first.

    `context` is the fleet's evidence, strongest first, and `log_verdict` the verdict without it (None where there is
    none). `disputed`: log and nodes are strong evidence for different sides. `uncorroborated`: it rests on a node event
    that neither log, scheduler nor a second source supports. `own_frame`: where in the job's own code an exception
    came from, as `train.py:88`, None if no traceback shows it. `chain`: from the beginning of the failure to the job's
    end; empty for a verdict that was stored without. `measures` belong to the classification, not to the
    verdict: they are neither stored nor sent with it; None for a verdict that was stored before.
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
    uncorroborated: bool = False
    context: tuple[ContextLine, ...] = ()
    log_verdict: LogVerdict | None = None
    own_frame: str | None = None
    chain: tuple[ChainStep, ...] = ()
    measures: InputMeasures | None = field(default=None, compare=False, repr=False)


class NotDiagnostic(ValueError):
    """The text does not have the format of its kind; the text of the error gives the reason."""
