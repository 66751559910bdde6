"""The first initiating line on logs of failing programs: compilers, package managers, test runners, launchers, servers.

`tests/data/first_lines/first_lines.jsonl.zst` has one object a line: `schema` ("first-line/1"), `id`, `program`,
`half`, `source`, `log`, and `first`, the 1-based numbers of the lines that a person marked as the beginning of the
failure (lines that state the same error). Each log is of a run that was made to fail for this set; nothing is trained
on it. The programs are split at random: rules were written with the half "development" alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import zstandard

from classifiers.contracts import Evidence, JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.ordering import LogOdds
from classifiers.extraction.scan import tidy
from tests.classifiers.packaged_catalogue import EXTRACTOR, SCANNER

LOGS = Path(__file__).parents[2] / "data" / "first_lines" / "first_lines.jsonl.zst"
MOST_LINES_ON_AVERAGE = 2.5


@dataclass(frozen=True)
class MarkedLog:
    id: str
    program: str
    half: str
    log: str
    first: Sequence[int]

    def is_first(self, line: Evidence) -> bool:
        lines = self.log.split("\n")
        return line.line in self.first or line.text in {tidy(lines[number - 1]) for number in self.first}


@cache
def marked_logs() -> tuple[MarkedLog, ...]:
    text = zstandard.ZstdDecompressor().stream_reader(LOGS.read_bytes()).read().decode()
    rows = [json.loads(line) for line in text.splitlines() if line]
    return tuple(MarkedLog(**{name: row[name] for name in ("id", "program", "half", "log", "first")}) for row in rows)


@cache
def beginnings() -> dict[str, tuple[Evidence, ...]]:
    job = JobFacts(status="failed", exit_code=1)
    found = {}
    for one in marked_logs():
        case = EXTRACTOR.extract(RawCase(job=job, streams=(LogStream(text=one.log),))).case
        found[one.id] = tuple(
            line for line in case.evidence if line.role == "initiating" and line.stream != "scheduler"
        )
    return found


@pytest.mark.parametrize(("half", "floor"), [("development", 0.92), ("test", 0.78)])
def test_the_first_initiating_line_is_the_line_that_began_the_failure(half: str, floor: float) -> None:
    logs = [one for one in marked_logs() if one.half == half]
    wrong = [one.id for one in logs if not any(map(one.is_first, beginnings()[one.id][:1]))]
    assert 1 - len(wrong) / len(logs) >= floor, wrong


def first_line(text: str, status: str = "failed", log_odds: LogOdds | None = None) -> str:
    extractor = Extractor(SCANNER, log_odds)
    job = JobFacts(status=status, exit_code=1)
    case = extractor.extract(RawCase(job=job, streams=(LogStream(text=text),))).case
    return next(line.text for line in case.evidence if line.role == "initiating")


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (["cc -c a.c", "a.c:3:7: error: expected ';'", "make: *** [Makefile:2: a.o] Error 1"], 1),
        (["  error: subprocess-exited-with-error", "      error: invalid command 'bdist'"], 1),
        (["error: no matching package named `x` found", "hint: the error may be a typo"], 0),
        (["thread 'main' (7) panicked at a.rs:4:2:", "error: test failed, to rerun pass `--lib`"], 0),
        (["npm error code EUSAGE", "npm error", "npm error The lock file is missing"], 2),
        (["==7==ERROR: AddressSanitizer: heap-buffer-overflow", *(f"fa fa fa 0{n}" for n in range(99)), "ABORTING"], 0),
    ],
)
def test_the_error_of_a_tool_leads_before_reports_of_the_failed_step(lines: Sequence[str], first: int) -> None:
    assert first_line("\n".join(lines)) == lines[first].strip()


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (
            [
                "java.lang.IllegalStateException: not usable",
                "\tat A.main(A.java:4)",
                "Caused by: java.io.UncheckedIOException: not read",
                "\tat A.read(A.java:2)",
                "\t... 1 more",
                "Caused by: java.nio.file.NoSuchFileException: a.yaml",
            ],
            5,
        ),
        (
            [
                "Traceback (most recent call last):",
                '  File "a.py", line 3, in get',
                "TimeoutError: timed out",
                "",
                "The above exception was the direct cause of the following exception:",
                "",
                "Traceback (most recent call last):",
                '  File "a.py", line 9, in main',
                "LoadError: no rows",
            ],
            2,
        ),
    ],
)
def test_the_first_exception_of_a_chain_leads(lines: Sequence[str], first: int) -> None:
    assert first_line("\n".join(lines)) == lines[first]


def test_an_exception_below_another_one_of_its_own_is_no_cause() -> None:
    text = "a.OneError: x\n\tat A.main(A.java:4)\nstarted again\nCaused by: b.TwoError: y\n"
    assert first_line(text) == "a.OneError: x"


@pytest.mark.parametrize(
    "tolerated",
    [
        "rm: cannot remove 'old.o': No such file or directory\nmake: [Makefile:3: all] Error 1 (ignored)",
        "+ ls /cache\nls: cannot access '/cache': No such file or directory\n+ true",
        "Warning: no configuration\n  The file /etc/tool.conf does not exist.",
        "WARNING:root:apex is not installed: No module named 'apex'",
        "fsevents not found (optional)",
    ],
)
def test_a_fault_that_the_lines_around_it_call_tolerated_is_no_beginning(tolerated: str) -> None:
    assert first_line(f"{tolerated}\ncp: cannot stat 'src': No such file or directory\n").startswith("cp: ")


PYTHON_FAILED = "Traceback (most recent call last):\n  File 'a.py', line 3, in <module>\nKeyError: '{}'"


@pytest.mark.parametrize(
    "command",
    [
        "mkdir: cannot create directory 'out': File exists",
        "ls: cannot access 'runs/*.pt': No such file or directory",
        "which: no nvcc in (/usr/local/bin:/usr/bin)",
    ],
)
def test_a_command_that_complains_is_no_beginning_where_a_program_ran_after_it(command: str) -> None:
    assert first_line(f"{command}\n{PYTHON_FAILED.format('labels')}\n") == "KeyError: 'labels'"


def test_a_command_that_missed_what_the_program_missed_later_is_the_beginning() -> None:
    text = "cp: cannot stat 'shards/train': No such file or directory\n" + PYTHON_FAILED.format("shards/train")
    assert first_line(text).startswith("cp: ")


@pytest.mark.parametrize(
    "routine",
    [
        "NOTE: no shared cache.\n   The space may be insufficient for large sets.",
        "ReadError('hub.example: timed out') thrown while requesting GET https://hub.example/a\nRetrying in 1s [1/5].",
        "  exit_on_error ................................... False",
        "TrainingArguments(fail_fast=True, timeout=1800, max_errors=0, output_dir=out)",
        "[rank0]: INFO:backends.probe:Unable to open libfast.so: cannot open shared object file",
        "iter 7: early_stopped False, killed_workers 0, cancelled: none",
        "cp: warning: source file 'a' specified more than once, second one not found",
        "ERROR exporter: the gateway refused the push, training is not affected",
        "bucket: 429 Too Many Requests, backing off 2.0 s",
    ],
    ids=["note", "retry", "setting", "settings", "information", "none", "warning", "not affected", "back-off"],
)
def test_what_a_program_prints_as_routine_is_no_beginning(routine: str) -> None:
    failure = "the row counts of the two towers mismatch"
    assert first_line(f"{routine}\nstep 1\n{failure}\n") == failure


def test_a_preempted_job_begins_with_the_notice_in_its_log() -> None:
    notice = "W1025 00:59:39.903149 30350 handler.py:44] SIGTERM received, node is being reclaimed"
    closed = "RuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.1]:4711"
    assert first_line(f"step 1\n{notice}\n{closed}\n", status="preempted") == notice


def test_few_lines_are_initiating() -> None:
    counts = [len(lines) for lines in beginnings().values()]
    assert sum(counts) / len(counts) <= MOST_LINES_ON_AVERAGE


def test_the_set_is_of_many_programs_and_each_mark_is_a_line() -> None:
    assert len({one.program for one in marked_logs()}) >= 50
    for one in marked_logs():
        lines = one.log.split("\n")
        assert one.first
        assert all(lines[number - 1].strip() for number in one.first), one.id


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_tool_that_fails_begins_the_failure_of_a_single_log_only(ranks: int) -> None:
    """A process of a training run starts tools, and goes on without them."""
    timeout = "[rank{0}]:[E ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: Work"
    texts = [f"fatal: bad revision 'v{rank}'\nepoch 1\n{timeout.format(rank)}\n" for rank in range(ranks)]
    texts[0] = texts[0] if ranks == 1 else texts[0].partition("\n")[2]
    streams = tuple(LogStream(text=text, rank=rank if ranks > 1 else None) for rank, text in enumerate(texts))
    case = EXTRACTOR.extract(RawCase(job=JobFacts(status="failed", exit_code=1), streams=streams)).case
    begun = next(line.text for line in case.evidence if line.role == "initiating")
    assert begun.startswith("fatal: ") == (ranks == 1), begun


ROUTINE = ["reading shards from /data", "model has 7 parameters groups", "step 1 done", "step 2 done"]
TELLING = "the towers disagree about their number of rows"


def odds(line: str) -> float | None:
    """As a fitted model would: high for the lines that tell a failure, low for the others."""
    return 3.0 if TELLING in line or "KeyError" in line else -4.0


@pytest.mark.parametrize(
    "routine",
    [[], ["upload failed, retrying in 5 s"], ["the queue has 3 lost entries and goes down"]],
    ids=["no sign", "a retry", "words of failure in an ordinary line"],
)
def test_a_line_without_a_known_sign_leads_by_its_words_where_no_other_shows_a_failure(routine: list[str]) -> None:
    lines = [*ROUTINE, *routine, TELLING, "writing the summary", "closing the loader"]
    assert first_line("\n".join(lines), log_odds=odds) == TELLING
    error = "KeyError: 'weight_decay'"
    assert first_line("\n".join([*lines, error]), log_odds=odds) == error


def test_no_line_leads_whose_words_do_not_tell() -> None:
    with pytest.raises(StopIteration):
        first_line("\n".join(ROUTINE), log_odds=odds)


def test_a_report_of_an_exit_comes_after_what_the_processes_say() -> None:
    lost = "RuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.1]:4711"
    report = "  time      : 2026-11-20_10:00:00\n  exitcode  : 1 (pid: 4711)"
    assert first_line(f"step 1\n{lost}\n{report}\n", status="node_fail") == lost


def test_what_the_file_system_itself_reports_leads_an_error_that_it_explains() -> None:
    report, effect = "beegfs: metadata target is offline: 7", "OSError: [Errno 5] Input/output error"

    def prefers_effect(line: str) -> float | None:
        return 4.0 if effect in line else -4.0

    assert first_line(f"step 3\n{report}\n{effect}\n", log_odds=prefers_effect) == report
    assert first_line(f"step 3\nbeegfs: metadata target is ready: 7\n{effect}\n", log_odds=prefers_effect) == effect


def test_the_source_line_that_pytest_marks_is_no_beginning() -> None:
    text = (
        "    @pytest.fixture\n    def db():\n"
        '>       raise RuntimeError("no database")\nE       RuntimeError: no database\n\ntest_a.py:5: RuntimeError\n'
    )
    assert first_line(text) == "E RuntimeError: no database"
    assert first_line("> error: no database\nstopped\n") == "> error: no database"


def test_no_words_overrule_the_first_line_of_a_crash() -> None:
    lines = ["test tests::mean ... FAILED", "thread 'tests::mean' (7) panicked at a.rs:4:2:", "assertion failed"]
    assert first_line("\n".join(lines), log_odds=lambda line: 4.0 if "FAILED" in line else -3.0) == lines[1]


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (["terminate called after throwing an instance of 'std::runtime_error'", "  what():  bad mesh"], "what(): bad"),
        (["F1120 10:00:00.123456 1234 trainer.cc:55] Check failed: a == b (3 vs. 4)", "@ 0x7f main"], "F1120 "),
        (["ERROR: mesh has 3 negative cells"], "ERROR: mesh"),
        (["mesh has 3 cells"], "./run.sh: line 3: 42 Aborted"),
        (["ERROR: mesh has 3 negative cells", *(f"step {step} loss 2.{step}" for step in range(60))], "./run.sh: "),
    ],
    ids=["exception", "check", "error", "no error", "long before"],
)  # fmt: skip
def test_what_a_process_said_before_it_aborted_comes_first(lines: Sequence[str], first: str) -> None:
    log = "\n".join(
        ["step 1 loss 2.0", *lines, "./run.sh: line 3: 42 Aborted                 (core dumped) ./solver", ""]
    )
    assert first_line(log).startswith(first)
