"""Logs rewritten as other tools show them: what stands around the lines does not change what a failure is.

`python -m tests.classifiers.log_surroundings` prints the share of verdicts that stay the same for each rewriting, over
a part of the written training runs and the short failures in tests/data that may be read.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from classifiers.composition import training_cases
from classifiers.contracts import LogStream, RawCase, Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser

DATA: Final = Path(__file__).parents[1] / "data"
SETS: Final[Mapping[str, Callable[[], list[LabelledCase]]]] = {
    "runs": lambda: training_cases.written_runs()[::_EVERY_RUN],
    "short failures": lambda: labelled_cases.read_file(DATA / "unseen_failures" / "labels.jsonl.zst"),
}
_EVERY_RUN: Final = 7  # of the written runs
Lines = Sequence[str]
Rewrite = Callable[[Lines, Sequence[datetime]], Lines]
_TRACEBACK: Final = "Traceback (most recent call last):"
_WORDS_OF_FAILURE: Final = re.compile(r"(?i)error|exception|traceback|fail|killed|abort")
_BAR: Final = "Epoch 3:  45%|####5     | 450/1000 [05:10<06:12,  1.47it/s, loss=2.31]"
_STARTUP: Final = (
    (
        "E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting "
        "to register factory for plugin cuDNN when one has already been registered"
    ),
    (
        "/opt/conda/lib/python3.11/site-packages/torch/utils/cpp_extension.py:28: UserWarning: Error checking compiler "
        "version for g++: [Errno 2] No such file or directory: 'g++'"
    ),
    "Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file",
    "WARNING: apex is not installed, falling back",
    "Failed to import tensorboardX, logging to stdout only",
)
_SETTINGS: Final = (
    "  max_restarts: 3", "  on_error: abort", "  nan_policy: raise", "  ignore_failed_samples: true",
    "  fail_on_missing: false", "  error_log: /tmp/err.log",
)  # fmt: skip
_IGNORED: Final = (
    "Exception ignored in: <function _ConnectionBase.__del__ at 0x7f2c1b0>",
    _TRACEBACK,
    '  File "/usr/lib/python3.11/multiprocessing/connection.py", line 132, in __del__',
    "    self._close()",
    "OSError: [Errno 9] Bad file descriptor",
)
_AT_EXIT: Final = (
    "Error in atexit._run_exitfuncs:",
    _TRACEBACK,
    '  File "/opt/conda/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2141, in _shutdown',
    "    group.shutdown()",
    "RuntimeError: Process group has already been destroyed",
)


def _each(envelope: Callable[[str, datetime], str]) -> Rewrite:
    return lambda lines, times: [envelope(*one) for one in zip(lines, times, strict=True)]


def _before(added: Lines) -> Rewrite:
    return lambda lines, _: [*added, *lines]


def _after(added: Lines) -> Rewrite:
    return lambda lines, _: [*lines, *added]


def _with_bars(lines: Lines, times: Sequence[datetime]) -> Lines:  # noqa: ARG001 - all have one signature
    return [f"\r{_BAR}{line}" if _WORDS_OF_FAILURE.search(line) and line[:1] != " " else line for line in lines]


def _boxed_tracebacks(lines: Lines, times: Sequence[datetime]) -> Lines:  # noqa: ARG001 - all have one signature
    out: list[str] = []
    frames: list[str] | None = None
    edge = "\u2500" * 30
    for line in lines:
        if line == _TRACEBACK:
            frames = []
        elif frames is None:
            out.append(line)
        elif line[:1] in {" ", "\t"}:
            frames.append(line)
        else:
            box = [f"\u2502 {frame.strip()} \u2502" for frame in frames]
            out += [f"\u256d{edge} Traceback (most recent call last) {edge}\u256e", *box, f"\u2570{edge}\u256f", line]
            frames = None
    return out if frames is None else [*out, _TRACEBACK, *frames]


# Each rewriting of the lines of one log, with a time for each line.
REWRITINGS: Final[Mapping[str, Rewrite]] = {
    "container runtime": _each(lambda line, at: f"{at:%FT%T.%f}123Z stderr F {line}"),
    "Docker's json-file": _each(lambda line, at: json.dumps({"log": f"{line}\n", "time": f"{at:%FT%T.%f}Z"})),
    "records of a collector": _each(
        lambda line, at: json.dumps({"timestamp": f"{at:%FT%T.%f}Z", "jsonPayload": {"message": line}})
    ),
    "logfmt": _each(lambda line, at: f'time="{at:%FT%TZ}" level=info msg={json.dumps(line)}'),
    "workflow engine": _each(lambda line, at: f"[{at:%FT%T}.000+0000] {{pod_manager.py:472}} INFO - [base] {line}"),
    "loguru of a runner": _each(lambda line, at: f"{at:%F %T}.123 | INFO     | runner:pump:88 - {line}"),
    "logging of a runner": _each(lambda line, at: f"{at:%F %T},123 - runner - INFO - {line}"),
    "CI job": _each(lambda line, at: f"train\tRun training\t{at:%FT%T}.0000000Z {line}"),
    "syslog": _each(lambda line, at: f"<14>1 {at:%FT%T}Z host train 4711 - - {line}"),
    "progress bars before lines": _with_bars,
    "tracebacks in boxes": _boxed_tracebacks,
    "notices at the start": _before(_STARTUP),
    "settings at the start": _before(_SETTINGS),
    "ignored exception at the end": _after(_IGNORED),
    "exception in atexit": _after(_AT_EXIT),
}


def rewritten(case: RawCase, rewrite: Rewrite) -> RawCase:
    """A case with rewritten logs; times run to the end of the job."""
    end = case.job.ended_at or datetime(2026, 11, 24, 10, 0)  # noqa: DTZ001 - any time
    streams: list[LogStream] = []
    for stream in case.streams:
        lines = stream.text.split("\n")
        times = [end - timedelta(milliseconds=20 * (len(lines) - number)) for number in range(len(lines))]
        text = "\n".join(rewrite(lines, times)) if stream.text.strip() else stream.text
        streams.append(replace(stream, text=text))
    return replace(case, streams=tuple(streams))


def stays(diagnoser: Diagnoser, cases: Sequence[LabelledCase], before: Sequence[Verdict], name: str) -> Iterator[bool]:
    """Of each case, whether its side stays under a rewriting."""
    after = diagnoser.diagnose([rewritten(case.raw, REWRITINGS[name]) for case in cases])
    yield from (one.side == other.side for one, other in zip(before, after, strict=True))


def main(model: Path) -> None:
    """Print the shares of sides that stay."""
    diagnoser = Diagnoser.load(model)
    sets = {name: read() for name, read in SETS.items()}
    before = {name: diagnoser.diagnose([case.raw for case in cases]) for name, cases in sets.items()}
    print(f"{'':32}" + "".join(f"{name:>18}" for name in sets))
    for name in REWRITINGS:
        shares = [list(stays(diagnoser, cases, before[key], name)) for key, cases in sets.items()]
        print(f"{name:32}" + "".join(f"{sum(one) / len(one):18.3f}" for one in shares))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(sys.prefix) / "share" / "faultline" / "model")
