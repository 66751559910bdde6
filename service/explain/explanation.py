"""An explanation: the verdict on raw logs, with the lines that matter at their places in the files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from classifiers.contracts import FLIGHT_RECORDER, LogStream, Verdict
from classifiers.diagnostic_files.streams import TITLES
from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.scan import ERROR_WORDS, tidy
from classifiers.own_frame import is_of_library
from classifiers.suspected_place import suspected_place
from classifiers.taxonomy import Role
from service.contracts.event import JobCompletion, NodeEventIn, Status
from service.contracts.verdict import EvidenceLine, VerdictBody
from service.explain import job_facts
from service.explain.file_names import Writer, writers
from service.explain.job_facts import JobEnd
from service.explain.read_logs import ReadLog
from service.signatures.operator_catalogue import LayeredCatalogue, OperatorEntry, actions_of

SCHEMA: Final = "explanation/1"
CLUSTER: Final = "local"
# Lines shown of each role, in this order (judgement: what a person reads before opening the log).
NODE_EVENT: Final = "node event"
_SHOWN: Final[dict[Role, int]] = {"initiating": 3, "cascade": 2, "teardown": 1, "context": 2}
# A log of warnings alone may be of a run without failure.
_FAILURE_WORDS: Final = tuple(word for word in ERROR_WORDS if word != "warning")
_FAILED_TEST: Final = re.compile(r"\bFAIL(?:ED|URES?)?\b(?!\W{0,4}\b0\b)")  # "FAIL: 0" counts none
_SKIPPED_NAMED: Final = 3  # files that are no text
_NO_LOG: Final = frozenset({"node", "scheduler"})
_KERNEL: Final = "dmesg"
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_FRAME: Final = re.compile(
    r"^(?P<prefix>.{0,200}?)\s{0,40}File \"(?P<file>[^\"\n]{1,400})\", line (?P<line>\d{1,7})"
    r"(?:, in (?P<function>[^\n]{1,100}))?"
)
_TRACEBACK: Final = "Traceback (most recent call last)"
_FRAMES_WITHIN: Final = 200  # lines before the exception, and characters
_BEFORE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One line that matters.

    Attributes:
        source: the file; "node event" or "scheduler" where it is from none.
        line: its 1-based number; below 0: counted from the end of the file; None if unknown.
        role: what the line is to the failure.
        text: the line.
        rank: the process that wrote it, None if unknown.
        node: its node, None if unknown.
        raised_at: of an exception in Python, the place in the program's own code: file, line and function.
    """

    source: str
    line: int | None
    role: Role
    text: str
    rank: int | None = None
    node: str | None = None
    raised_at: str | None = None


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log that was read: who wrote it, and what was left out."""

    log: ReadLog
    writer: Writer


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on logs. `given` names the facts that the person gave; the others are guessed."""

    body: VerdictBody
    sources: tuple[LogSource, ...]
    skipped: tuple[str, ...]
    lines: tuple[ShownLine, ...]
    end: JobEnd
    given: frozenset[str]
    own_entries: tuple[OperatorEntry, ...] = ()

    @property
    def shows_failure(self) -> bool:
        """Whether anything shows the failure: a known message, words of failure, or how the job ended.

        Where the person says that it ended with an exit code, any line that may be a beginning does.

        Of a log without any, the classifier takes the last lines, which may be the end of a run without failure.
        """
        if self.end.status is not Status.FAILED:
            return True
        is_given = "exit_code" in self.given and self.end.exit_code != 0
        if any(_FAILED_TEST.search(line.text) for line in self.body.evidence if line.note is None):
            return True
        return any(
            line.role != "context"
            and not _is_fact(line)
            and (
                is_given
                or line.signature is not None
                or line.stream in TITLES
                or contains_any(line.text.lower(), _FAILURE_WORDS)
            )
            for line in self.body.evidence
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the explanation/1 object as JSON types."""
        verdict = self.body.to_wire()
        for line in verdict["evidence"]:  # a verdict numbers lines from the beginning only
            line["line"] = line["line"] if (line["line"] or 0) > 0 else None
        return {
            "schema": SCHEMA,
            "verdict": verdict,
            "shows_failure": self.shows_failure,
            "lines": [
                {
                    "file": line.source,
                    "line": line.line if (line.line or 0) > 0 else None,
                    "line_from_end": -line.line if line.line is not None and line.line < 0 else None,
                    "role": line.role,
                    "rank": line.rank,
                    "node": line.node,
                    "text": line.text,
                    "raised_at": line.raised_at,
                }
                for line in self.lines
            ],
            "logs": [
                {
                    "file": one.log.name,
                    "bytes": one.log.size,
                    "rank": one.writer.rank,
                    "node": one.writer.node,
                    "stream": one.writer.stream,
                    "note": one.log.note,
                }
                for one in self.sources
            ],
            "site_actions": [{"signature": one.signature.id, "action": one.action} for one in self.own_entries],
            "skipped": list(self.skipped),
            "assumed": {
                name: value
                for name, value in {
                    "status": self.end.status.value,
                    "exit_code": self.end.exit_code,
                    "signal": self.end.signal,
                    "scheduler": self.end.scheduler,
                }.items()
                if name not in self.given and value is not None
            },
        }


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """The logs and facts of one failed job, before classification."""

    event: JobCompletion
    streams: tuple[LogStream, ...]
    sources: tuple[LogSource, ...]
    skipped: tuple[str, ...]
    end: JobEnd
    given: frozenset[str]


def prepare(
    logs: Sequence[ReadLog],
    *,
    status: Status | None = None,
    exit_code: int | None = None,
    node_events: Sequence[NodeEventIn] = (),
) -> ExplainRequest:
    """Build the event and the log streams; what is not given is guessed from names and texts of the logs."""
    sources, skipped = _sources(logs)
    accounts = (job_facts.of_accounting(one.log.text) for one in sources if one.log.kind == "sacct")
    recorded = next(filter(None, accounts), None)
    guessed = recorded or job_facts.guess(one.log.text for one in sources if one.log.kind is None)
    end = guessed
    given: set[str] = set()
    if status is not None:
        end, given = replace(end, status=status), given | {"status"}
    if exit_code is not None:
        end, given = replace(end, exit_code=exit_code, signal=None), given | {"exit_code"}
    if end.scheduler is None and any(one.writer.job for one in sources):
        end = replace(end, scheduler="slurm")
    times = [one.log.modified for one in sources if one.log.modified is not None]
    event = JobCompletion(
        cluster=CLUSTER,
        job_id=next((one.writer.job for one in sources if one.writer.job), "log"),
        status=end.status,
        exit_code=end.exit_code,
        signal=end.signal,
        scheduler=end.scheduler,
        ended_at=max(times, default=datetime.now(UTC)),
        nodes=_nodes(sources),
        node_events=tuple(node_events),
    )
    return ExplainRequest(event, tuple(map(_stream, sources)), sources, skipped, end, frozenset(given))


def _nodes(sources: Sequence[LogSource]) -> tuple[str, ...]:
    """Return the nodes that names of logs and reports of a lost node name."""
    lost = job_facts.nodes_of_loss(one.log.text for one in sources if one.log.kind is None)
    return tuple(dict.fromkeys([*(one.writer.node for one in sources if one.writer.node), *lost]))


def _sources(logs: Sequence[ReadLog]) -> tuple[tuple[LogSource, ...], tuple[str, ...]]:
    """Return the logs with their writers, and what is skipped and why: logs of torchrun's earlier attempts, no text."""
    if not any(one.is_text and one.kind is None and one.text.strip() for one in logs):
        # Without a log of the job, the kernel's lines are all that shows the failure.
        logs = [replace(one, kind=None) if one.kind == _KERNEL else one for one in logs]
    found = _without_idle(_with_writers([one for one in logs if one.is_text and one.kind is None]))
    found += _with_writers([one for one in logs if one.kind is not None])
    last = max((one.writer.attempt or 0 for one in found), default=0)
    of_last_attempt = tuple(one for one in found if one.writer.attempt is None or one.writer.attempt == last)
    left = len(found) - len(of_last_attempt)
    skipped = [f"{left} logs of earlier attempts (attempt_{last} is the last)"] if left else []
    others = [one for one in logs if not one.is_text]
    skipped += [f"{one.name}: left out, {one.note}" for one in others[:_SKIPPED_NAMED]]
    if len(others) > _SKIPPED_NAMED:
        skipped.append(f"{len(others) - _SKIPPED_NAMED} more files that are no text: left out")
    return of_last_attempt, tuple(skipped)


def _with_writers(logs: Sequence[ReadLog]) -> list[LogSource]:
    """Return logs with their writers; a diagnostic file is a stream named for its kind."""
    found = zip(logs, writers([one.name for one in logs]), strict=True)
    return [LogSource(log, replace(writer, stream=log.kind or writer.stream)) for log, writer in found]


def _without_idle(found: Sequence[LogSource]) -> list[LogSource]:
    """Return logs without the empty ones that say nothing: of no rank, or of one that printed elsewhere."""
    printed = {one.writer.rank for one in found if one.log.text.strip()} | {None}
    return [one for one in found if one.log.text.strip() or one.writer.rank not in printed]


def _stream(source: LogSource) -> LogStream:
    windows = source.log.windows
    if source.log.kind == FLIGHT_RECORDER:
        place = source.writer
        return LogStream(source.log.text, place.rank, place.node, FLIGHT_RECORDER, None, missing=source.log.note)
    return LogStream(
        text=source.log.text,
        rank=source.writer.rank,
        node=source.writer.node,
        stream=source.writer.stream,
        first_line=windows[0][1] if windows else 1,
        windows=windows if len(windows) > 1 else (),
    )


def with_suspected_node(event: JobCompletion, verdict: Verdict) -> JobCompletion:
    """Return the event for the advice: where no node of the job is known, with the one that the verdict suspects."""
    suspect = suspected_place(verdict.suspect, verdict.side, abstained=verdict.abstained)
    return event if event.nodes or suspect.node is None else event.model_copy(update={"nodes": (suspect.node,)})


def explain(request: ExplainRequest, body: VerdictBody, layered: LayeredCatalogue) -> Explanation:
    """Return the explanation of a verdict on the request; `layered` is the catalogue that it was made with."""
    return Explanation(
        body=body,
        sources=request.sources,
        skipped=request.skipped,
        lines=tuple(_shown_lines(body.evidence, request.sources)),
        end=request.end,
        given=request.given,
        own_entries=actions_of(layered, (line.signature for line in body.evidence)),
    )


def _shown_lines(evidence: Sequence[EvidenceLine], sources: Sequence[LogSource]) -> list[ShownLine]:
    left = dict(_SHOWN)
    if any(line.role == "initiating" and not _is_fact(line) for line in evidence):
        left["context"] = 0
    shown: list[ShownLine] = []
    for line in evidence:
        if left[line.role] <= 0 or _is_fact(line) or _WORD.search(line.text) is None:
            continue
        left[line.role] -= 1
        number = line.line
        if line.stream in _NO_LOG:
            name, log = NODE_EVENT if line.stream == "node" else line.stream, None
        elif line.stream in TITLES:  # what several files show together, or not as they write it
            name, log, number = _diagnostic_name(line, sources), None, None
        else:
            log = _log_of(line, sources)
            name = "log" if log is None else log.name
        raised_at = None if log is None or number is None else _raised_at(log, number)
        shown.append(ShownLine(name, number, line.role, line.text, line.rank, line.node, raised_at))
    return sorted(shown, key=lambda one: list(_SHOWN).index(one.role))


def _diagnostic_name(line: EvidenceLine, sources: Sequence[LogSource]) -> str:
    """Return the file that shows a finding; where several may, what they are."""
    files = [one for one in sources if one.log.kind == line.stream and one.writer.rank in {line.rank, None}]
    is_joint = line.stream == FLIGHT_RECORDER or len(files) != 1
    return TITLES[line.stream] if is_joint else files[0].log.name


def _is_fact(line: EvidenceLine) -> bool:
    """Return whether a line only repeats how the job ended."""
    return line.stream == "scheduler" and line.text.startswith("status=")


def _log_of(line: EvidenceLine, sources: Sequence[LogSource]) -> ReadLog | None:
    """Return the log that has a line of evidence: the one whose text at this number is the line's."""
    sources = [one for one in sources if one.log.kind is None]
    if len(sources) == 1:
        return sources[0].log
    own = [one for one in sources if one.writer.stream == line.stream and one.writer.rank in {line.rank, None}]
    for one in [*own, *sources]:
        if line.line is not None and tidy(_text_at(one.log, line.line)) == line.text:
            return one.log
    return own[0].log if own else None


def _offset_of(log: ReadLog, number: int) -> int | None:
    """Return where the line of a number begins in the text, None if it was not read."""
    for index, (offset, first) in enumerate(log.windows):
        end = log.windows[index + 1][0] if index + 1 < len(log.windows) else len(log.text)
        if (first > 0) != (number > 0) or number < first:
            continue
        at = offset
        for _ in range(number - first):
            at = log.text.find("\n", at, end) + 1
            if at <= 0:
                break
        else:
            return at
    return None


def _text_at(log: ReadLog, number: int) -> str:
    """Return the line of a number, empty if it was not read."""
    at = _offset_of(log, number)
    if at is None:
        return ""
    newline = log.text.find("\n", at)
    return log.text[at : newline if newline >= 0 else len(log.text)]


def _raised_at(log: ReadLog, number: int) -> str | None:
    """Return where an exception was raised, by the traceback that ends in a line: in the program's own code if there.

    Lines of other processes may stand between those of the traceback; only frames with the line's prefix count.
    """
    at = _offset_of(log, number)
    if at is None:
        return None
    text = _text_at(log, number)
    found: str | None = None
    for line in reversed(log.text[max(0, at - _BEFORE) : at].split("\n")[-_FRAMES_WITHIN:]):
        frame = _FRAME.match(line)
        if frame is not None and text.startswith(frame["prefix"]):
            place = f"{frame['file']}:{frame['line']}" + (f" in {frame['function']}" if frame["function"] else "")
            if not is_of_library(frame["file"]):
                return place
            found = found or place
        elif _TRACEBACK in line and text.startswith(line.partition(_TRACEBACK)[0].rstrip()):
            break
    return found
