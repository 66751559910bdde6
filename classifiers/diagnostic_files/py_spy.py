"""`py-spy dump` of several ranks: which rank is somewhere else while the others wait for it.

Source: py-spy 0.4 (README, "py-spy dump"): a line `Thread ID (state): "name"` for each thread, below it the frames, the
innermost first, as `function (file:line)`. Only the main thread of each process is read.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.contracts import DiagnosticFinding, NotDiagnostic

_KIND: Final = "py_spy"
# Limits of what is read and shown of one file (judgement: far more than a real one has).
_MOST_LINES: Final = 20_000
_MOST_FRAMES: Final = 200
_SHOWN_RANKS: Final = 8
_THREAD: Final = re.compile(r'^Thread \S{1,40}(?: \([\w+ ]{1,30}\))?(?:: "(?P<name>[^"\n]{0,100})")?')
_FRAME: Final = re.compile(
    r"^\s{2,64}(?P<function>[\w.<>$][\w.<>$ ]{0,119}?) \((?P<file>[^()\n]{1,300}?)(?::(?P<line>\d{1,7}))?\)\s*$"
)
# Functions in which a rank waits for other ranks or for its own device; a device waits in a collective too.
_WAITS: Final = re.compile(
    r"(?:torch/distributed/|torch/_C/_distributed|horovod/|mpi4py|jax/|deepspeed/comm/).*|torch/cuda/(?:__init__|streams)\.py"
)
_WAITING: Final = re.compile(
    r"(?i)^(?:all_?reduce|all_?gather|reduce_scatter|broadcast|barrier|monitored_barrier|all_to_all|gather|scatter|reduce|recv"
    r"|send|wait|synchronize|block_until_ready)\w*$"
)
_INNERMOST: Final = 6  # frames in which a wait is searched
_LIBRARY: Final = re.compile(
    r"(?:^|/)(?:torch|horovod|deepspeed|jax|mpi4py|threading\.py|contextlib\.py)(?:/|$)|^threading"
)


@dataclass(frozen=True, slots=True)
class _Frame:
    function: str
    file: str
    line: int | None

    def __str__(self) -> str:
        return (
            f"{self.function} ({self.file}:{self.line})" if self.line is not None else f"{self.function} ({self.file})"
        )


def read_stacks(dumps: Sequence[tuple[int | None, str]]) -> list[DiagnosticFinding]:
    """Return which ranks are not in the collective in which the others wait; else where the ranks are.

    Args:
        dumps: rank and dump of each process; None for one of an unknown rank. Of several of a rank the last counts.

    Raises:
        NotDiagnostic: a text is no dump of py-spy with a main thread.
    """
    of_rank = {rank: _main_thread(text) for rank, text in dumps if rank is not None}
    stacks = [*of_rank.items(), *((rank, _main_thread(text)) for rank, text in dumps if rank is None)]
    waiting = [wait for _, stack in stacks if (wait := _wait(stack)) is not None]
    busy = [(rank, stack) for rank, stack in stacks if _wait(stack) is None]
    known = [rank for rank, _ in busy if rank is not None]
    if waiting and busy and len(busy) <= len(waiting):
        usual = Counter(wait.function for wait in waiting).most_common(1)[0][0]
        others = "1 other rank waits" if len(waiting) == 1 else f"{len(waiting)} other ranks wait"
        return [
            DiagnosticFinding(
                _KIND,
                f"py-spy: {_name(rank)} is in {_place(stack)}; {others} in {usual}",
                "initiating" if rank is not None and len(known) <= _SHOWN_RANKS else "cascade",
                rank=rank,
            )
            for rank, stack in busy[:_SHOWN_RANKS]
        ]
    places = Counter(_place(stack) for _, stack in stacks)
    return [
        DiagnosticFinding(_KIND, f"py-spy: {count} {'rank is' if count == 1 else 'ranks are'} in {place}", "context")
        for place, count in places.most_common(_SHOWN_RANKS)
    ]


def _main_thread(text: str) -> list[_Frame]:
    frames: list[_Frame] = []
    inside, threads = False, 0
    for line in text.split("\n")[:_MOST_LINES]:
        thread = _THREAD.match(line)
        if thread is not None:
            threads += 1
            if inside and frames:
                break
            inside = thread["name"] in {"MainThread", None}
        elif inside and (frame := _FRAME.match(line)) is not None and len(frames) < _MOST_FRAMES:
            number = frame["line"]
            frames.append(_Frame(frame["function"], frame["file"], int(number) if number else None))
    if not threads or not frames:
        raise NotDiagnostic("not an output of py-spy dump: it shows no main thread")
    return frames


def _wait(stack: list[_Frame]) -> _Frame | None:
    """The frame in which a process waits for others, None if it does not."""
    inner = [frame for frame in stack if frame.line is not None][
        :_INNERMOST
    ]  # `py-spy dump --native` shows libraries too
    return next((frame for frame in inner if _WAITS.search(frame.file) and _WAITING.match(frame.function)), None)


def _place(stack: list[_Frame]) -> str:
    """The innermost frame, and the innermost one of the program's own code where that is another."""
    own = next((frame for frame in stack if frame.line is not None and _LIBRARY.search(frame.file) is None), None)
    first = stack[0]
    return str(first) if own is None or own is first else f"{first}, called by {own}"


def _name(rank: int | None) -> str:
    return "a process of unknown rank" if rank is None else f"rank {rank}"
