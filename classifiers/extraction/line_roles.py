"""The role of one line: what the catalogue's entry that knows it says, else what its shape tells."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction import benign_lines
from classifiers.extraction.evidence_items import ROLE_ORDER, STRENGTH_ORDER
from classifiers.extraction.line_headers import is_mild
from classifiers.extraction.line_shapes import has_one, is_overcome, lost_a_peer, shape_of
from classifiers.extraction.scan import Found
from classifiers.extraction.tracebacks import Trace
from classifiers.signatures import Signature
from classifiers.taxonomy import Role

_SHELL: Final = re.compile(
    r"^[\w./-]+: (?:line )?\d+: |^(?:sed|awk|grep|tar|cp|mv|rm|ln|mkdir|cat|ls|chmod|ssh|scp|rsync): "
)
_AGAIN: Final = re.compile(
    r"(?i)\battempt \d+ ?(?:of|/) ?\d+|\bretry(?:ing)?\b|\btrying again|\bwill retry|\bfalling back"
)
_CHAIN_WORDS: Final = (
    "During handling of the above", "The above exception was the direct", "frame #", "Exception raised from ",
    "terminate called after throwing", "terminate called recursively",
)  # fmt: skip
_WAITED: Final = re.compile(r"(?i)\btimed? ?out\b|\bdeadline exceeded|DEADLINE_EXCEEDED|heartbeat")
_NOT_SURE: Final = 2.3
_INFO_GLOG: Final = re.compile(r"(?:^|[\s:\]])\[?I[01]\d[0-3]\d \d\d:\d\d:\d\d")
_WITNESS: Final = re.compile(
    r"successfully reached monitoredBarrier|Please check rank \d+ logs|another (?:task|rank|process) died"
)
# One of these stands in all that these find, and is found faster.
_AGAIN_PARTS: Final = ("attempt ", "retry", "trying again", "falling back")
_WAITED_PARTS: Final = ("time", "deadline", "heartbeat")
_WITNESS_PARTS: Final = ("successfully reached", "Please check rank", "another ")
# Exceptions that a process raises because another one went away, as often as for reasons of its own.
_ECHOES: Final = frozenset(
    {
        "EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "ConnectionRefusedError",
        "TimeoutError", "ProcessRaisedException", "ChildFailedError", "CalledProcessError", "SystemExit",
        "KeyboardInterrupt", "UnavailableError", "DeadlineExceededError", "CancelledError", "AbortedError",
        "RayTaskError", "RemoteError", "ProcessExitedException", "BrokenProcessPool",
    }
)  # fmt: skip
_ECHO: Final = 2.4
AGAIN: Final = 2.6
_FRAME: Final = re.compile(r'\bFile "[^"\n]+", line \d+, in ')


def role_of(  # noqa: PLR0911 - one return a shape
    found: Found, bare: str, hits: Sequence[Signature], trace: Trace | None, exception: str | None
) -> tuple[Role, float]:
    """Role and bucket of a line; tries made again and echoes of others' ends come behind, any run's notices last."""
    match shape_of(bare):
        case "report":
            return "teardown", 9
        case "boilerplate":
            return "teardown" if hits else "context", 9
        case "crash":
            return "initiating", 1
        case "end":
            return "initiating", _NOT_SURE
        case _:
            pass
    role, bucket = _by_itself(found, bare, hits, trace, exception)
    if trace is None and (
        (role == "initiating" and benign_lines.is_harmless(found.text))
        or (role in {"initiating", "cascade"} and bucket > 0 and is_overcome(bare))
    ):
        return "context", 9
    if role == "initiating":
        if (bucket > 0 and has_one(bare, _WITNESS_PARTS) and _WITNESS.search(bare, 0, 400)) or lost_a_peer(bare):
            return "cascade", 9
        low = bare[:400].lower() if bare.isascii() else None  # other letters may stand for ours where case is no matter
        if (low is None or has_one(low, _AGAIN_PARTS)) and _AGAIN.search(bare, 0, 300):
            bucket = max(bucket, AGAIN)
        elif bucket > 0 and (
            exception in _ECHOES or ((low is None or has_one(low, _WAITED_PARTS)) and _WAITED.search(bare, 0, 400))
        ):
            bucket = max(bucket, _ECHO)
    return role, bucket


def _by_itself(  # noqa: PLR0911 - one return a shape of line
    found: Found, bare: str, hits: Sequence[Signature], trace: Trace | None, exception: str | None
) -> tuple[Role, float]:
    """Role and bucket of a line by itself."""
    if hits:
        best = min(hits, key=lambda one: (STRENGTH_ORDER[one.strength], ROLE_ORDER[one.role]))
        first = min(hits, key=lambda one: (ROLE_ORDER[one.role], STRENGTH_ORDER[one.strength]))
        chosen = best if best.role in {"cascade", "teardown"} or first.role != "initiating" else first
        if chosen.role == "initiating":
            if chosen.strength != "decisive" and _INFO_GLOG.search(found.text, 0, 60):
                return "context", 9  # the program itself calls it information
            bucket: float = (0, 1, 2.2)[STRENGTH_ORDER[chosen.strength]]
            if chosen.strength == "weak" and (trace is not None or exception):
                bucket = 1.2
            return "initiating", bucket
        if chosen.role != "context" or (trace is None and exception is None):
            return chosen.role, 9
    if trace is not None:
        return "initiating", 1.6 if trace.chained else 1.1
    if exception is not None and not is_mild(found.text):
        return "initiating", 1.3
    if _SHELL.match(bare) is not None:
        return "initiating", 1.4
    if found.severe and not is_mild(found.text):
        return "initiating", 3
    return "context", 9


def hits_of(found: Found, raw: RawCase, stream: str, present: frozenset[str]) -> tuple[Signature, ...]:
    """The entries that know a line and whose conditions on the job and on the rest of the case hold."""
    out = []
    for one in found.hits:
        if one.when is not None and not one.when.holds(raw.job, stream):
            continue
        if one.needs and not any(_is_present(name, present) for name in one.needs):
            continue
        if one.unless and any(_is_present(name, present - {one.id}) for name in one.unless):
            out.append(replace(one, role="context", strength="weak"))
            continue
        out.append(one)
    return tuple(out)


def _is_present(name: str, present: frozenset[str]) -> bool:
    if name.endswith(".*"):
        return any(one.startswith(name[:-1]) for one in present)
    return name in present


def is_code(text: str, offset: int, body: str) -> bool:
    """Whether the line is a frame of a traceback or the source that stands below one."""
    bare = body.lstrip()
    if bare.startswith(('File "', "raise ", *_CHAIN_WORDS)):
        return shape_of(bare) is None
    if bare == body:
        return False
    before = text.rfind("\n", 0, max(0, offset - 1)) + 1
    return _FRAME.search(text, before, offset) is not None
