"""The role and the onset of one line: from the catalogue entries that match it, else from its form."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction import benign_lines
from classifiers.extraction.evidence_items import NODE, ROLE_ORDER, STRENGTH_ORDER
from classifiers.extraction.line_headers import is_informational
from classifiers.extraction.line_shapes import (
    Shape,
    contains_any,
    declares_error,
    is_overcome,
    reports_lost_peer,
    shape_of,
)
from classifiers.extraction.onset import Onset
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.tracebacks import EXCEPTION, Traceback
from classifiers.relevance.event_rules import CHANGES
from classifiers.signatures import Signature
from classifiers.taxonomy import Role

_SHELL: Final = re.compile(
    r"^[\w./-]+: (?:line )?\d+: |^(?:sed|awk|grep|tar|cp|mv|rm|ln|mkdir|cat|ls|chmod|ssh|scp|rsync): "
    r"|^(?:wget|curl|sftp|unzip|gzip|chown|touch|mount|umount|mktemp|azcopy|rclone): "
)
_RETRY: Final = re.compile(
    r"(?i)\battempt \d+ ?(?:of|/) ?\d+|\bretrying\b|\btrying again|\bwill retry|\bfalling back|\bbacking off\b"
    # Not where the attempts are over.
    r"|\bretry\b(?![^\n]{0,20}\b(?:exceeded|exhausted|reached)\b)"
)
_TIMEOUT: Final = re.compile(r"(?i)\btimed? ?out\b|\bdeadline exceeded|DEADLINE_EXCEEDED|heartbeat")
# Levels of glog ("I0502 07:08:09") and of TensorFlow and XLA ("I tensorflow/core/framework/op.cc:12]").
_INFO_GLOG: Final = re.compile(r"(?:^|[\s:\]])(?:\[?I[01]\d[0-3]\d \d\d:\d\d:\d\d|I [\w./-]{3,90}\.(?:cc|h):\d)")
_WARNING_LEVEL: Final = re.compile(
    r"(?:^|[\s:\]])(?:\[?W[01]\d[0-3]\d \d\d:\d\d:\d\d|W [\w./-]{3,90}\.(?:cc|h):\d)"
    r"|(?:\d\d:\d\d:\d\d[^\n]{0,60}?[\s\[|:-]|^\[?)(?:WARN|WARNING|INFO|DEBUG)[\]\s|:-]"
)
# Python's logging without a set format: "INFO:package.module:message".
_LOW_LEVEL_HEAD: Final = re.compile(r"(?:WARNING|INFO|DEBUG):[\w.]+:")
# An exception of another process, whose output the program logs line by line.
_RELAYED: Final = re.compile(r"(?:\[[\w.-]{1,40}\] )?(?:[a-z_]\w*\.){1,8}[A-Z]\w*(?:Error|Exception): ")
_RAISED_AGAIN: Final = re.compile(r"\bCaught \w+ in (?:DataLoader worker process|replica|pin memory thread)\b")
# The level that a logging library prints, after a time or in brackets, and not a word of the message.
_ERROR_LEVEL: Final = re.compile(
    r"\d\d:\d\d:\d\d[^\n]{0,60}?[\s\[|:-](?:ERROR|CRITICAL|FATAL)[\s\]|:-]|^\[?(?:ERROR|CRITICAL|FATAL)[\]:| ]"
)
_WITNESS: Final = re.compile(
    r"successfully reached monitoredBarrier|Please check rank \d+ logs|another (?:task|rank|process) died"
    # Points to lines that say more.
    r"|\b[Ss]ee (?:the )?(?:\w+ ){0,3}(?:causes?|errors?|exceptions?|tracebacks?|traces?|messages?|logs?|output)"
    r" \(?above"
    r"|\b(?:[Ss]ee|[Cc]heck|[Rr]efer to) (?:the )?above (?:\w+ )?"
    r"(?:errors?|exceptions?|tracebacks?|traces?|messages?|logs?|output)\b"
    r"|\b(?:[Ss]ee above|[Ll]ook up|[Ss]croll up|[Ll]ook above) (?:for|to see|to find)\b"
    r"|\bhas (?:already )?errored(?: already)?\b"
)
# One of these is part of every match of the expression above it, and is found faster.
_RETRY_PARTS: Final = ("attempt ", "retry", "trying again", "falling back", "backing off")
_TIMEOUT_PARTS: Final = ("time", "deadline", "heartbeat")
_WITNESS_PARTS: Final = (
    "successfully reached",
    "Please check rank",
    "another ",
    "above",
    "ook up",
    "croll up",
    " errored",
)
_TRACEBACK_PARTS: Final = (
    'File "', "raise ", "During handling of the above", "The above exception was the direct", "frame #",
    "Exception raised from ", "terminate called after throwing", "terminate called recursively",
)  # fmt: skip
# What stands before the name of an exception in source code, and how far into a line a name is searched (judgement).
_PYTHON_WORDS: Final = ("except", "class", "raise", "=", "(", '"', "'")
_PREFIX_RANGE: Final = 160
# Exceptions that a process raises because another one went away, as often as for reasons of its own.
_CONSEQUENCE_EXCEPTIONS: Final = frozenset(
    {
        "EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "ConnectionRefusedError",
        "TimeoutError", "ProcessRaisedException", "ChildFailedError", "CalledProcessError", "SystemExit",
        "KeyboardInterrupt", "UnavailableError", "DeadlineExceededError", "CancelledError", "AbortedError",
        "RayTaskError", "RemoteError", "ProcessExitedException", "BrokenProcessPool", "EngineDeadError",
        "AsyncEngineDeadError", "MQEngineDeadError",
        # All ranks raise what some of them met.
        "CheckpointException", "DeadlockDetectedException",
    }
)  # fmt: skip
_TIMEOUT_ENDINGS: Final = ("Timeout", "TimeoutError", "TimedOut")  # of what a program calls its own exceptions
# Families of entries for what serves a program: a time limit that it reports is no consequence of the program's end.
_SERVED: Final = frozenset({"kernel", "storage"})
_FRAME: Final = re.compile(r'\bFile "[^"\n]+", line \d+, in ')
_BY_STRENGTH: Final = {
    "decisive": Onset.DECISIVE_ENTRY, "strong": Onset.STRONG_ENTRY, "weak": Onset.WEAK_ENTRY,
}  # fmt: skip
# The error that pytest prints below the source line that raised it, which it marks with ">".
_PYTEST_ERROR: Final = re.compile(r"\n[^\n]{0,60}?\bE {3,12}\S")
# How far into a line an expression is searched, in characters (judgement: the reason stands near the front).
_RETRY_RANGE: Final = 300
_RANGE: Final = 400
_EVENTS: Final = frozenset({NODE})
_HEADER_RANGE: Final = 60
_LEVEL_RANGE: Final = 160
# What loguru and better_exceptions print below a source line: the values of its names.
_VALUES: Final = ("│ ", "└ ")
# Words like levels that are none: NCCL has no level of errors above it, the kernel writes them before its finds, and a
# shell that warns of a script without an end runs nothing of the rest.
_NO_LEVELS: Final = ("NCCL WARN ", "INFO: task ", "INFO: rcu", "warning: here-document ")
_MADE: Final[dict[str, tuple[Signature, Signature]]] = {}  # entries as context, by the id of the entry


class LineFacts:
    """What is known of a line before it gets a role.

    Not a data class: one is made for each line with a hit, and a constructor of its own is compiled.

    Attributes:
        line: the line as the scanner found it.
        message: the line without its header.
        hits: the catalogue entries whose conditions hold.
        traceback: the traceback whose final line it is.
        exception: the exception class that it names.
        is_only_log: whether its log is the only one of the case, as of a build or a test run. There a tool's own error
            ends the job. A process of a training run also starts tools, and goes on if one of them fails.
    """

    __slots__ = ("exception", "hits", "is_only_log", "line", "message", "traceback")

    def __init__(
        self,
        line: ScannedLine,
        message: str,
        hits: Sequence[Signature] = (),
        traceback: Traceback | None = None,
        exception: str | None = None,
        *,
        is_only_log: bool = True,
    ) -> None:
        self.line = line
        self.message = message
        self.hits = hits
        self.traceback = traceback
        self.exception = exception
        self.is_only_log = is_only_log


def classify_line(facts: LineFacts) -> tuple[Role, Onset]:
    """Role and onset of a line."""
    shape = shape_of(facts.message)
    if shape is not None:
        return _by_shape(shape, facts)
    role, onset = _by_hits_or_form(facts)
    if facts.traceback is None and _is_harmless_sign(facts, role, onset):
        return "context", Onset.NEUTRAL
    if role == "initiating":
        return _check_for_consequence(facts, onset)
    return role, onset


def _by_shape(shape: Shape, facts: LineFacts) -> tuple[Role, Onset]:
    match shape:
        case "report":
            return "teardown", Onset.NEUTRAL
        case "boilerplate":
            return "teardown" if facts.hits else "context", Onset.NEUTRAL
        case "crash":
            return "initiating", Onset.STRONG_ENTRY
        case "end":
            return "initiating", Onset.PROCESS_END
        case "step":
            return "initiating", Onset.ERROR_WORDS


def _is_harmless_sign(facts: LineFacts, role: Role, onset: Onset) -> bool:
    """Whether a line that shows a failure by its form is harmless by its words.

    The tests are those of `benign_lines.is_harmless`. A decisive entry is overruled by a phrase of any run alone, an
    exception not by a count of none, and a change by no phrase. PyTorch says in a warning of Python that it cannot use
    a device, and goes on without it: such a decisive entry counts.
    """
    of_change = any(hit.id.startswith(CHANGES) for hit in facts.hits)
    if role == "initiating" and not of_change and benign_lines.is_benign(facts.line.text):
        of_node = onset is Onset.DECISIVE_ENTRY and not all(map(_is_of_user, facts.hits))
        return not (of_node and benign_lines.is_python_warning(facts.line.text))
    if role == "initiating" and facts.exception is None and onset > Onset.DECISIVE_ENTRY:
        literals = {literal for hit in facts.hits for literal in hit.literals}
        if benign_lines.says_none_failed(facts.message, facts.line.error_words | literals):
            return True
    return role in {"initiating", "cascade"} and onset > Onset.DECISIVE_ENTRY and is_overcome(facts.message)


def _check_for_consequence(facts: LineFacts, onset: Onset) -> tuple[Role, Onset]:
    """Role and onset of an initiating line after a check for consequences and attempts that are made again."""
    message = facts.message
    if message.find("Caught ", 0, _HEADER_RANGE) >= 0 and _RAISED_AGAIN.search(message, 0, _RANGE) is not None:
        return "initiating", max(onset, Onset.LIKELY_CONSEQUENCE)  # the error itself follows
    undecided = onset > Onset.DECISIVE_ENTRY
    witness = undecided and contains_any(message, _WITNESS_PARTS) and _WITNESS.search(message, 0, _RANGE)
    if witness or reports_lost_peer(message):
        return "cascade", Onset.NEUTRAL
    # Beyond ASCII, letters of other alphabets may match where case is ignored: the parts do not hold then.
    low = message[:_RANGE].lower() if message.isascii() else None
    if (low is None or contains_any(low, _RETRY_PARTS)) and announces_retry(message):
        return "initiating", Onset.RETRIED
    waited = facts.exception in _CONSEQUENCE_EXCEPTIONS or (facts.exception or "").endswith(_TIMEOUT_ENDINGS)
    if undecided and (waited or (_is_timeout(message, low) and not _is_of_server(facts.hits))):
        return "initiating", max(onset, Onset.LIKELY_CONSEQUENCE)
    return "initiating", onset


def announces_retry(message: str) -> bool:
    """Whether a line says that something is tried again."""
    return _RETRY.search(message, 0, _RETRY_RANGE) is not None


def _is_of_server(hits: Sequence[Signature]) -> bool:
    """Whether an entry knows the line as a kernel's report that a file server or a disk does not answer."""
    return any(hit.family in _SERVED for hit in hits)


def _is_timeout(message: str, low: str | None) -> bool:
    return (low is None or contains_any(low, _TIMEOUT_PARTS)) and _TIMEOUT.search(message, 0, _RANGE) is not None


def _by_hits_or_form(facts: LineFacts) -> tuple[Role, Onset]:
    """Role and onset by the catalogue entries, else by the form of the line."""
    if facts.hits:
        chosen = _leading_hit(facts.hits)
        if chosen.role == "initiating":
            return _by_entry(chosen, facts)
        if chosen.role != "context" or (facts.traceback is None and facts.exception is None):
            return chosen.role, Onset.NEUTRAL
    if facts.traceback is not None:
        return "initiating", Onset.CHAINED_TRACEBACK if facts.traceback.chained else Onset.TRACEBACK
    onset = _by_form(facts)
    return ("context", Onset.NEUTRAL) if onset is None else ("initiating", onset)


def _leading_hit(hits: Sequence[Signature]) -> Signature:
    """The entry that decides: an initiating one, unless a stronger one calls the line a consequence."""
    strongest = min(hits, key=lambda hit: (STRENGTH_ORDER[hit.strength], ROLE_ORDER[hit.role]))
    earliest = min(hits, key=lambda hit: (ROLE_ORDER[hit.role], STRENGTH_ORDER[hit.strength]))
    if strongest.role in {"cascade", "teardown"} or earliest.role != "initiating":
        return strongest
    return earliest


def _by_entry(entry: Signature, facts: LineFacts) -> tuple[Role, Onset]:
    if "NCCL INFO " in facts.line.text[:_RANGE] or (
        entry.strength != "decisive" and _INFO_GLOG.search(facts.line.text, 0, _HEADER_RANGE)
    ):
        return "context", Onset.NEUTRAL  # the program itself logs it as information
    if (
        (entry.strength != "decisive" or (_is_of_user(entry) and not entry.needs))
        and facts.traceback is None
        and (_WARNING_LEVEL.search(facts.line.text, 0, _LEVEL_RANGE) or _LOW_LEVEL_HEAD.match(facts.message))
        and not contains_any(facts.line.text[:_RANGE], _NO_LEVELS)
    ):
        return "initiating", Onset.RETRIED  # the program goes on: it comes first only where nothing else does
    if entry.strength == "weak" and (facts.traceback is not None or facts.exception):
        return "initiating", Onset.WEAK_ENTRY_EXCEPTION
    return "initiating", _BY_STRENGTH[entry.strength]


def _is_of_user(entry: Signature) -> bool:
    """Whether an entry is about the program: a program that goes on after such an error was not ended by it."""
    return bool(entry.causes) and all(cause.startswith("USER.") for cause in entry.causes)


def _by_form(facts: LineFacts) -> Onset | None:
    """The onset by the form of a line, None for a line without any sign of failure."""
    if facts.exception is not None and (
        not is_informational(facts.line.text) or _RELAYED.match(facts.message) is not None
    ):
        return Onset.NAMED_EXCEPTION
    if _SHELL.match(facts.message) is not None and ": warning: " not in facts.message[:_RANGE]:
        return Onset.SHELL_ERROR
    if facts.is_only_log and declares_error(facts.message):
        return Onset.LOGGED_ERROR
    if facts.line.is_severe and not is_informational(facts.line.text):
        return Onset.LOGGED_ERROR if _ERROR_LEVEL.search(facts.line.text, 0, _LEVEL_RANGE) else Onset.ERROR_WORDS
    return None


def applicable_hits(line: ScannedLine, raw: RawCase, stream: str, present: frozenset[str]) -> tuple[Signature, ...]:
    """The entries that match a line and whose conditions hold on the job and the rest of the case.

    Args:
        line: the line.
        raw: its case.
        stream: the name of its stream.
        present: ids of all entries that match a line of the case.
    """
    out = []
    for entry in line.hits:
        # An entry for events only was tried on a log because a daemon printed the line: it says what an event says.
        as_event = entry.when is not None and entry.when.stream == _EVENTS
        if entry.when is not None and not entry.when.holds(raw.job, NODE if as_event else stream):
            continue
        if entry.needs and not any(is_present(name, present) for name in entry.needs):
            continue
        if entry.unless and _is_refuted(entry, present):
            out.append(_as_context(entry))
            continue
        out.append(entry)
    return tuple(out)


def _is_refuted(entry: Signature, present: frozenset[str]) -> bool:
    """Whether an entry other than this one, beside which this one is only context, is among some."""
    for name in entry.unless:
        others = present - {entry.id} if name.endswith(".*") else present
        if name != entry.id and is_present(name, others):
            return True
    return False


def _as_context(entry: Signature) -> Signature:
    """An entry as one that says nothing of a beginning; made once for each."""
    known = _MADE.get(entry.id)
    if known is None or known[0] is not entry:  # other catalogues may have an entry of this id
        known = _MADE[entry.id] = (entry, replace(entry, role="context", strength="weak"))
    return known[1]


def is_present(name: str, present: frozenset[str]) -> bool:
    """Whether an entry of this id, or with `.*` of this family, is among some."""
    if name.endswith(".*"):
        return any(one.startswith(name[:-1]) for one in present)
    return name in present


def _names_exception(message: str) -> bool:
    """Whether a line is an exception, which stands below its frame where the source line is not printed."""
    found = EXCEPTION.search(message, 0, _PREFIX_RANGE)
    return found is not None and not contains_any(message[: found.start("type")], _PYTHON_WORDS)


def is_source_code(text: str, offset: int, line: str, *, stamped: bool = False) -> bool:
    """Whether a line without its header is a frame of a traceback, or the source line printed with a frame.

    Args:
        text: the log.
        offset: where the line begins.
        line: the line without its header.
        stamped: whether it has a header, which may have taken its indentation.
    """
    message = line.lstrip()
    if message.startswith("> ") and _PYTEST_ERROR.search(text, offset + len(line), offset + len(line) + _RANGE):
        return True
    if message.startswith(_VALUES) and not message.endswith(_VALUES[0].rstrip()):  # which a panel's lines do
        return True
    if message.startswith(_TRACEBACK_PARTS):
        return shape_of(message) is None
    if (message == line and not stamped) or _names_exception(message):
        return False
    previous = text.rfind("\n", 0, max(0, offset - 1)) + 1
    return _FRAME.search(text, previous, offset) is not None
