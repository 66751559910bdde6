"""Lines that mean the same whatever the catalogue knows: exit reports, boilerplate, crashes, overcome trouble.

Sources: torchelastic's report, Open MPI's and MPICH's help texts, UCX' and glog's stacks, CPython's and glibc's crash
messages, NCCL's and gloo's messages on lost peers, `monitored_barrier`, urllib3's and wandb's retries; the messages of
GCC, make, ninja, CMake, cargo, pip, npm, PostgreSQL, curl, git, TAP and Valgrind.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, cast

Shape = Literal["report", "boilerplate", "crash", "end", "step"]

# A launcher's report of process exits (torchelastic), field by field.
_REPORT: Final = (
    r"(?:exitcode|error_file|traceback|time|host|rank) +: (?!Traceback)|Failures:$|\S+ FAILED$|<NO_OTHER_FAILURES>"
    r"|error_file: |Exit code: |=\s{1,8}EXIT CODE: "
)
# Frames of a native stack, and what launchers print around every failure, whatever it was.
_BOILERPLATE: Final = (
    r"\*{3} Check failure stack trace|@ {1,8}0x[0-9a-f]|#\d{1,3} {1,4}0x|\d{1,3} {1,4}/\S{1,200}\.so"
    r"|\d\. this process (?:called|did not call)|error message you will receive is this one|detect that the abort call"
    r"|exiting or it will be considered|terminated by signals sent by|NOTE: invoking MPI_ABORT|with errorcode -?\d+\.$"
    r"|a non-zero exit code\.|Primary job +terminated normally|YOUR APPLICATION TERMINATED WITH"
    r"|=+ {0,3}(?:CLEANING UP|YOU CAN IGNORE|BAD TERMINATION)|={2,} backtrace \(|-{3,} ?Python error"
    r"|To avoid data inconsistency|Some NCCL operations have failed|CUDA kernel errors might be asynchronously"
    r"|(?:[^\s:]{1,80}:(?:\d{1,6}:){1,2} |= )?(?:[Nn]ote|NOTE|[Hh]int|HINT|[Hh]elp): |As a reminder, |stack backtrace:"
    r"|\d{1,3}: [\w<]\S{0,200}::\S|npm (?:error|ERR!)\s{0,8}(?:(?:code|errno|syscall|path|address|port) \S{1,80})?$"
    r"|[=_]{8,} \S{1,200} [=_]{8,}$|(?:plugins|rootdir|configfile): \S"
    r"|(?:FAIL|FAILED|ERROR|(?i:errors|failures|error|failed))\s?:?$"
)
_BOILERPLATE_WORDS: Final = (
    "ORTE_ERROR_LOG: ", "*** End of error message", "Signal code: ", "Failing at address: ", "MPI_ERRORS_ARE_FATAL",
    "To avoid data inconsistency", "Some NCCL operations have failed",
)  # fmt: skip
# The first line that a runtime prints of a crash: MPI, CPython, glibc, sanitizers and Valgrind, Rust, Go, assert().
_CRASH: Final = (
    r"Abort\(-?\d+\) on node \d+ \(rank \d+|Fatal Python error: (?!Aborted)"
    r"|(?:double free or corruption|free\(\): |malloc\(\): "
    r"|munmap_chunk\(\): )|\*{3} stack smashing detected|==\d{1,9}==\s?(?:ERROR: \w{1,20}Sanitizer: "
    r"|Invalid (?:read|write|free)|Conditional jump or move depends on|Process terminating with)"
    r"|thread '[^']{0,200}' (?:\(\d+\) )?panicked at |panic: \S|fatal error: (?!error )\w+[^\n]{0,80}(?:!|$)"
    r"|\S{1,200}: \S{1,200}:\d{1,6}: [^\n]{1,200}: Assertion [`'\"]"
)
# A process that ended the job, or a child process that ended: the beginning, if no line shows more.
_END: Final = (
    r"Fatal Python error: Aborted"
    r"|terminate called after throwing an instance of '(?!c10::|std::runtime_error)|MPI_ABORT was invoked on rank \d+"
    r"|(?:mpirun|prterun|mpiexec)\S{0,20} has exited due to process rank \d+"
)
# A tool reports that a command, a build step or a check that it ran has failed: the error itself stands above.
_STEP: Final = (
    r"g?make(?:\[\d+\])?: \*{3} \[|ninja: build stopped|collect2: error: ld returned|compilation terminated\.$"
    r"|error: (?:subprocess-exited-with-error|metadata-generation-failed|could not compile |test failed, to rerun"
    r"|aborting due to|failed to run custom build command|command '[^']{1,300}' failed with exit|failed to push some)"
    r"|ERROR: Failed building wheel|Found \d{1,6} errors?\b|BUILD FAIL(?:ED|URE)\b|Errors while running CTest"
    r"|##\[error\]Process completed with exit code|-- Configuring incomplete, errors occurred|test result: FAILED"
    r"|\d{1,3}% tests passed, |\d{1,6} errors?(?: generated\.)?$"
)
_BEGINNING: Final = re.compile(
    f"(?P<report>{_REPORT})|(?P<boilerplate>{_BOILERPLATE})|(?P<crash>{_CRASH})|(?P<end>{_END})|(?P<step>{_STEP})"
)
# A tool's own statement of an error: `error: `, `fatal: `, `file.c:3:7: error: `, `psql:x.sql:8: ERROR: `.
_DECLARED: Final = re.compile(
    r"(?:[|\u2502\u2570\u00d7E>#!*-]{1,3}\s{1,8})?(?:[^\s:]{1,200}(?::[^\s:]{1,99}){0,2}: ){0,2}"
    r"(?:(?i:(?:fatal |syntax |internal )?error|fatal|panic)(?:\[\w{1,12}\]| \w{1,12}\d)?: \s*\S"
    r"|CMake Error(?: at|: \S))|curl: \(\d{1,3}\) |g?make(?:\[\d+\])?: \*{3} No rule|CONFLICT \(|not ok \d{1,6} |E: \S"
    r"|E {3,12}(?:assert |Failed: )"
)
_CHILD: Final = re.compile(r"DataLoader worker \(pid\S{0,4} [\d, ]+\) (?:is killed|exited unexpectedly)")
_OVERCOME: Final = re.compile(
    r"\b(?:skipped|skipping|ignored|ignoring|reconnected|recovered|succeeded|entering retry loop)\b"
    r"|the ipv6 network addresses of .{1,200}gai error: -(?!3 )"
    r"|\b(?:not (?:found|available|installed)|unavailable), (?:using|falling back)\b"
    r"|, (?:training )?continu(?:es|ing)\b|\bfalling back to\b|\(handled\b[^)]{1,80}\)|, rebuilt\b"
    r"|\bdisabled, \w+ continues\b"
    r"|\b(?:goes|carries) on\b|\b(?:are|is|were|was) left out\b|\bcreating (?:a )?new\b"
    r"|\b(?:upload|session|transfer)s? resumed\b"
    r"|\b(?:acquired|established|reachable|available|healthy) again\b|\b(?:connection|session) restored\b"
    r"|\bresolved (?:after|itself)\b|\bcompleted after (?:backoff|retr|\d)"
    r"|\(optional\)|\breplaced by the\b|\bwill be (?:ignored|skipped|none)\b|\bdefaulting to\b|\bsuppressed\b"
    r"|\b(?:is|are) not affected\b|\bretried (?:ok|successfully)\b|\bok (?:after|on) (?:retry|attempt)\b"
)
_PEERS: Final = re.compile(
    r"(?:gloo|nccl|socketprogress|socketpoll|collective|allreduce|all_?gather|reduce|broadcast|horovod|\bring|c10d|tcpstore).{0,400}?"
    r"(?:closed by (?:remote )?peer|reset by peer|remote process exited|socket closed|broken pipe|has been shut down)"
    r"|^additional grpc error information from remote target|mpi_err_proc_failed"
)
_PEER_WORDS: Final = (
    "by peer", "by remote peer", "process exited", "socket closed", "broken pipe", "shut down", "remote target",
    "proc_failed",
)  # fmt: skip
_TIMEOUT: Final = re.compile(r"(?i)timed? ?out|heartbeat|deadline exceeded|stall")
_RELAYED_TIMEOUT: Final = re.compile(
    r"dump signal (?:from another rank|due to a collective timeout from (?!\s{0,4}this local rank))"
)
_OVERCOME_WORDS: Final = (
    "skip", "ignor", "reconnect", "recover", "succeed", "retry loop", "ipv6 network", ", using", "falling back",
    "continu", "(optional)", "handled", "rebuilt", "replaced by", "will be none", "defaulting to", "suppressed",
    "not affected", "retried", "ok after", "ok on", "goes on", "carries on", "left out",
    "creating", "resumed", "acquired again", "established again", "able again", "healthy again", "restored", "resolved",
    "completed after",
)  # fmt: skip
# How far into a line is searched, in characters (judgement).
_RANGE: Final = 300
_PEER_RANGE: Final = 600


def shape_of(message: str) -> Shape | None:
    """The shape of a line without its header, None for any other line."""
    found = _BEGINNING.match(message)
    if found is not None:
        return cast("Shape", found.lastgroup)
    front = message[:_RANGE]
    if "*** Process received signal ***" in front or ("] Caught signal " in front and " (" in front):
        return "crash"
    for words in _BOILERPLATE_WORDS:
        if words in front:
            return "boilerplate"
    if "DataLoader worker (" in front and _CHILD.search(front):
        return "end"
    return None


def is_crash(message: str) -> bool:
    """Whether a line without its header is the first line of a runtime's crash report."""
    return shape_of(message) == "crash"


def declares_error(message: str) -> bool:
    """Whether a line without its header is a tool's own statement of an error, as compilers and command lines print."""
    return _DECLARED.match(message, 0, _RANGE) is not None


def is_overcome(message: str) -> bool:
    """Whether a line without its header calls its own trouble overcome."""
    low = message[:_RANGE].lower()
    return contains_any(low, _OVERCOME_WORDS) and _OVERCOME.search(low) is not None


def reports_lost_peer(message: str) -> bool:
    """Whether a line without its header reports that a collective lost another process."""
    low = message[:_PEER_RANGE].lower()
    return contains_any(low, _PEER_WORDS) and _PEERS.search(low) is not None


def names_timeout(text: str, most: int) -> bool:
    """Whether the first `most` characters of a text name a wait that reached its limit."""
    return _TIMEOUT.search(text, 0, most) is not None


def relays_timeout(text: str, most: int) -> bool:
    """Whether the first `most` characters of a text only pass on that another rank gave up waiting (PyTorch)."""
    return "dump signal" in text and _RELAYED_TIMEOUT.search(text, 0, most) is not None


def contains_any(text: str, words: Iterable[str]) -> bool:
    """Whether one of the words is in the text: a plain loop, since `any` over a generator takes twice as long."""
    for word in words:  # noqa: SIM110 - see above
        if word in text:
            return True
    return False
