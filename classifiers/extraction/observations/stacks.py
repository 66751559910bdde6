"""Stacks that processes print of themselves when they do not go on: where each of them was."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText
from classifiers.relevance.entry_groups import wait_timeouts

# CPython's faulthandler and py-spy: the innermost call comes first.
_STACK: Final = re.compile(
    r"(?m)(?:\(most recent call first\):|\(active(?:\+gil)?\)(?:: \"MainThread\")?)[^\n]*\n"
    r"(?P<frames>(?:[^\n]*\n?){1,40})"
)
_FRAME: Final = re.compile(
    r"File \"(?P<path>[^\"\n]{1,300})\", line \d+ in (?P<name>\S{1,100})"
    r"|^\s*(?P<call>[\w<>.]{1,100}) \((?P<file>[^()\n]{1,300}\.py):\d+\)"
)
# Calls in which a process waits for others or for its device.
_WAITS: Final = re.compile(
    r"(?i)distributed|nccl|gloo|collective|barrier|synchroni[sz]e|all_?(?:reduce|gather)|reduce_scatter|broadcast|backward"
    r"|\bwait\b|\bitem$|rendezvous|\bjoin$|\bacquire$|\bselect$|\bpoll$|\bsleep$|threading|queue|multiprocessing"
)
# Calls in which it waits for files, servers or the system.
_READS: Final = re.compile(
    r"(?i)^(?:read\w*|open|load|recv\w*|send\w*|connect|stat|exists|listdir|scandir|glob|flush|fsync|write|close|request|get)$"
    r"|urllib|requests|socket|ssl|http|fsspec|s3|boto|grpc"
)
_INNERMOST: Final = 3  # frames that tell what a process does (judgement)


def is_busy_elsewhere(streams: Sequence[StreamText]) -> bool:
    """Whether the only stacks are of ranks that neither wait nor read, while other ranks waited until a limit."""
    logs = [stream for stream in streams if not stream.is_scheduler and stream.text]
    with_stack = {log.index: stacks for log in logs if (stacks := _stacks(log.text))}
    if not with_stack or any(map(_is_waiting, with_stack.values())):
        return False
    return any(
        hit.id in wait_timeouts()
        for log in logs
        if log.index not in with_stack
        for line in log.lines
        for hit in line.hits
    )


def _stacks(text: str) -> list[list[str]]:
    """The calls of each stack of a log, innermost first: file and function."""
    if "most recent call first" not in text and "(active" not in text:
        return []
    stacks = [
        [_call(frame) for frame in map(_FRAME.search, found["frames"].split("\n")) if frame]
        for found in _STACK.finditer(text)
    ]
    return [stack for stack in stacks if stack]


def _call(frame: re.Match[str]) -> str:
    return f"{frame['path'] or frame['file']} {frame['name'] or frame['call']}"


def _is_waiting(stacks: Sequence[Sequence[str]]) -> bool:
    """Whether none of the stacks of a process is of a call that neither waits nor reads."""
    return all(
        any(_WAITS.search(call) or _READS.search(call.split(" ")[-1]) for call in stack[:_INNERMOST])
        for stack in stacks
    )
