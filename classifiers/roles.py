"""The role of one line: what the catalogue's entry that knows it says, else what its shape tells."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from classifiers.case import RawCase
from classifiers.items import ROLE_ORDER, STRENGTH_ORDER
from classifiers.lines import is_mild
from classifiers.scan import Found
from classifiers.signatures import Signature
from classifiers.taxonomy import Role
from classifiers.traces import Trace

_SHELL: Final = re.compile(
    r"^[\w./-]+: (?:line )?\d+: |^(?:sed|awk|grep|tar|cp|mv|rm|ln|mkdir|cat|ls|chmod|ssh|scp|rsync): "
)
_AGAIN: Final = re.compile(
    r"(?i)\battempt \d+ ?(?:of|/) ?\d+|\bretry(?:ing)?\b|\btrying again|\bwill retry|\bfalling back"
)
# What a program itself calls overcome.
_OVERCOME: Final = re.compile(
    r"(?i)\b(?:skipped|skipping|ignored|ignoring|reconnected|recovered|succeeded|entering retry loop)\b|The IPv6 network addresses of"
)
_CHAIN_WORDS: Final = (
    "During handling of the above", "The above exception was the direct", "frame #", "Exception raised from ",
    "terminate called after throwing", "terminate called recursively",
)  # fmt: skip
_WAITED: Final = re.compile(r"(?i)\btimed? ?out\b|\bdeadline exceeded|DEADLINE_EXCEEDED|heartbeat")
# A launcher's report of ends (torchelastic), and what ranks say that only waited for another one.
_REPORTED: Final = re.compile(
    r"^(?:exitcode|error_file|traceback|time|host|rank) +: (?!Traceback)|^Failures:$|^\S+ FAILED$"
    r"|^<NO_OTHER_FAILURES>|^error_file: |^Exit code: |^=\s{1,8}EXIT CODE: "
)
# What launchers print around every failure, whatever it was.
_BOILERPLATE: Final = re.compile(
    r"^\d\. this process (?:called|did not call)|^error message you will receive is this one|^detect that the abort call was"
    r"|^exiting or it will be considered an|^terminated by signals sent by|^NOTE: invoking MPI_ABORT|^with errorcode -?\d+\.$"
    r"|^a non-zero exit code\.|^Primary job +terminated normally|^YOUR APPLICATION TERMINATED WITH THE EXIT STRING"
    r"|ORTE_ERROR_LOG: |\*\*\* End of error message|Signal code: |Failing at address: |^To avoid data inconsistency"
    r"|^=+ {0,3}(?:CLEANING UP|YOU CAN IGNORE|BAD TERMINATION)|^Some NCCL operations have failed|MPI_ERRORS_ARE_FATAL"
    r"|^CUDA kernel errors might be asynchronously|^-{3,} ?Python error|^={2,} backtrace \("
)
# The first that a crashing runtime prints of a crash.
_CRASHED: Final = re.compile(
    r"\*\*\* Process received signal \*\*\*|^Abort\(-?\d+\) on node \d+ \(rank \d+|\] Caught signal \d+ \("
    r"|^Fatal Python error: |^(?:double free or corruption|free\(\): |malloc\(\): |munmap_chunk\(\): )|^\*\*\* stack smashing detected"
)
_ABORTED: Final = re.compile(
    r"^MPI_ABORT was invoked on rank \d+|^(?:mpirun|prterun|mpiexec)\S{0,20} has exited due to process rank \d+"
)
# A consequence within the rank itself: whatever ended its child, the rank is the one where it began.
_OWN_CHILD: Final = re.compile(r"\bDataLoader worker \(pid\S{0,4} [\d, ]+\) (?:is killed|exited unexpectedly)")
_NOT_SURE: Final = 2.3
# Frames of a native stack (glog, libunwind, gdb, UCX): never where a failure is told first.
_NATIVE_FRAME: Final = re.compile(
    r"^(?:\*{3} Check failure stack trace|@ {1,8}0x[0-9a-f]|#\d{1,3} {1,4}0x|\d{1,3} {1,4}/\S{1,200}\.so)"
)
_INFO_GLOG: Final = re.compile(r"(?:^|[\s:\]])\[?I[01]\d[0-3]\d \d\d:\d\d:\d\d")
_WITNESS: Final = re.compile(
    r"successfully reached monitoredBarrier|Please check rank \d+ logs|another (?:task|rank|process) died"
)
# A collective that lost a peer: told by those that stayed.
_PEER_LOST: Final = re.compile(
    r"(?i)(?:gloo|nccl|collective|allreduce|all_?gather|reduce|broadcast|horovod|ring|c10d|TCPStore).{0,400}?"
    r"(?:closed by (?:remote )?peer|reset by peer|remote process exited|socket closed|broken pipe|has been shut down)"
    r"|^Additional GRPC error information from remote target|MPI_ERR_PROC_FAILED"
)
# Exceptions that a process raises because another one went away, as often as for reasons of its own.
_ECHOES: Final = frozenset(
    {
        "EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "ConnectionRefusedError",
        "TimeoutError", "ProcessRaisedException", "ChildFailedError", "CalledProcessError", "SystemExit",
        "KeyboardInterrupt", "UnavailableError", "DeadlineExceededError", "CancelledError", "AbortedError", "RayTaskError", "RemoteError", "ProcessExitedException", "BrokenProcessPool",
    }
)  # fmt: skip
_ECHO: Final = 2.4
AGAIN: Final = 2.6
_FRAME: Final = re.compile(r'\bFile "[^"\n]+", line \d+, in ')


def role_of(
    found: Found, bare: str, hits: Sequence[Signature], trace: Trace | None, exception: str | None
) -> tuple[Role, float]:
    """Role and bucket of a line, tries that are made again and echoes of other processes' ends put behind."""
    if _REPORTED.search(bare, 0, 300):
        return "teardown", 9
    if _NATIVE_FRAME.match(bare) or _BOILERPLATE.search(bare, 0, 200):
        return "context" if not hits else "teardown", 9
    if _CRASHED.search(bare, 0, 200):
        return "initiating", 1
    if _ABORTED.match(bare) or _OWN_CHILD.search(bare, 0, 300):
        return "initiating", _NOT_SURE
    role, bucket = _by_itself(found, bare, hits, trace, exception)
    if role in {"initiating", "cascade"} and bucket > 0 and trace is None and _OVERCOME.search(bare, 0, 300):
        return "context", 9
    if role == "initiating":
        if (bucket > 0 and _WITNESS.search(bare, 0, 400)) or _PEER_LOST.search(bare, 0, 600):
            return "cascade", 9
        if _AGAIN.search(bare, 0, 300):
            bucket = max(bucket, AGAIN)
        elif bucket > 0 and (exception in _ECHOES or _WAITED.search(bare, 0, 400)):
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
        return True
    if bare == body:
        return False
    before = text.rfind("\n", 0, max(0, offset - 1)) + 1
    return _FRAME.search(text, before, offset) is not None
