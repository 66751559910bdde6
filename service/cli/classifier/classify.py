"""`faultline classify FILE|- [--output FILE]`: print one verdict/1 line for each job completion, in input order."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from service import settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.classifier.verdict_of_event import case_of, wire
from service.cli.files import opened_input, opened_output
from service.clock import SystemClock
from service.contracts.event import MAX_EVENT_BYTES, JobCompletion, Status
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped
from service.formats.recognise import parse
from service.recommend import policy
from service.signatures.reloading_diagnoser import ReloadingDiagnoser
from service.signatures.signature_folder import SignatureFolder

BATCH = 500
BATCH_BYTES = 64 * 1024 * 1024
_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Answer:
    """A line that needs no classification: the answer to it, and whether the line was bad."""

    value: dict[str, Any]
    bad: bool = False


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "classify",
        help="classify the failed jobs in a file of events",
        description="Reads job completions, one JSON object per line, and writes one verdict per line. "
        "Exit code: 0 all lines good, 3 some lines bad, 2 usage error, 4 no model or a foreign one.",
    )
    parser.add_argument("file", help="JSON lines of job completions, - for standard input")
    parser.add_argument("--output", type=Path, help="write here instead of standard output")
    parser.add_argument("--model", type=Path, help="the model's folder (FAULTLINE_MODEL_DIR)")
    parser.add_argument("--cluster", help="cluster name for records without one")


def _read(number: int, line: bytes, cluster: str | None) -> JobCompletion | _Answer:
    try:
        event = parse(line, cluster=cluster)
    except UnreadableRecord as error:
        first = error.errors[0] if error.errors else None
        details = {
            "field": first.field if first else "(whole object)",
            "expected": first.expected if first else error.reason,
            "got": first.got if first else None,
        }
        return _Answer({"line": number, "error": details}, bad=True)
    if isinstance(event, Skipped):
        return _Answer({"line": number, "skipped": event.reason})
    if event.status is Status.SUCCEEDED:
        return _Answer({"job_id": event.job_id, "skipped": "succeeded"})
    return event


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; a line longer than any event is cut to the length that proves it too long."""
    while line := source.readline(MAX_EVENT_BYTES + 2):
        yield line
        while line and not line.endswith(b"\n"):
            line = source.readline(_PIECE)


def _batches(lines: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if batch and (len(batch) >= BATCH or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((number, line))
        size += len(line)
    if batch:
        yield batch


def classify(
    lines: Iterable[bytes],
    out: IO[bytes],
    diagnoser: ReloadingDiagnoser,
    rules: policy.Policy,
    cluster: str | None = None,
) -> tuple[int, int]:
    """Write the result of each line to `out`, in order; return the numbers of lines read and of bad lines."""
    bad = total = 0
    for batch in _batches(lines):
        total += len(batch)
        read: Sequence[JobCompletion | _Answer] = [_read(number, line, cluster) for number, line in batch]
        verdicts = iter(diagnoser.diagnose([case_of(one) for one in read if isinstance(one, JobCompletion)]))
        for one in read:
            if isinstance(one, _Answer):
                bad += one.bad
                answer = one.value
            else:
                answer = wire(one, next(verdicts), rules)
            out.write(output.json_line(answer))
    return total, bad


def run(args: argparse.Namespace) -> int:
    """Classify the events of a file.

    Raises:
        ModelUnavailable: there is no model, or it is not a model of this version.
        ConfigurationError: a setting is wrong, or a file can't be opened.
    """
    configured = settings.read()
    folder = SignatureFolder(configured.signatures_dir, SystemClock())
    diagnoser = ReloadingDiagnoser(args.model or configured.model_dir, folder, key=configured.model_key_bytes())
    rules = policy.load(configured.policy_file)
    with opened_input(args.file) as source, opened_output(args.output) as out:
        total, bad = classify(_lines(source), out, diagnoser, rules, args.cluster)
    if bad:
        lines = "line" if total == 1 else "lines"
        output.problem(f"{bad} of {total} {lines} could not be read; see the errors in the output")
    return exit_codes.SOME_LINES_BAD if bad else exit_codes.OK
