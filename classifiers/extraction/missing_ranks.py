"""Ranks that a line reports as missing: they did not arrive, did not answer or died elsewhere.

Sources: `monitored_barrier`, c10d's store, Horovod's stall check, JAX and TensorFlow coordination.
"""

import re
from typing import Final

from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.process_exits import parse_ranks

_MISSING: Final = (
    re.compile(r"(?i)\bstraggl\w*\W{1,3}(?:is )?rank (?P<ranks>\d+)|\bslow(?:est)? rank\W{1,3}(?P<slow>\d+)"),
    re.compile(
        r"(?i)ranks? (?P<ranks>[\d, ]+) "
        r"(?:failed to pass monitored|did not (?:join|reach|call)|never (?:joined|arrived))"
    ),
    re.compile(r"(?i)(?:missing|absent|waiting (?:on|for)|stalled) ranks?[^\w\n]{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)(?:missing|absent) (?:workers?|tasks?)\W{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)\[(?P<ranks>\d+(?:[, ]+\d+)*)\] (?:did not|have not|has not) (?:join|respon)"),
    re.compile(r"wait timeout after \d+ms, keys: /default_pg/\S{0,80}?/(?P<ranks>\d{1,6})(?:\s|$)"),
    re.compile(r"while rank (?P<ranks>\d+) has inconsistent"),
    re.compile(r"(?i)\bTask (?P<ranks>\d+) heartbeat timeout"),
)  # fmt: skip
# One of these is part of every match in an ASCII line. Beyond ASCII, letters of other alphabets may match where case
# is ignored.
_MISSING_PARTS: Final = (
    "rank", "missing worker", "missing task", "absent worker", "absent task", " not join", " not respon",
    "/default_pg/", "heartbeat timeout",
)  # fmt: skip
_TASK: Final = re.compile(r"/job:(?:jax_worker|worker|ps|chief)/replica:\d+/task:(?P<rank>\d+)")
_STALLED: Final = re.compile(r"Missing ranks:\s{0,8}\n(?:[^\n]{0,80}?[>\]:\s])?(?P<rank>\d{1,6}): \[")
_LOST_WORDS: Final = (
    "remote target", "straggler", "set to error", "unhealthy", "heartbeat", "lost", "stopped", "disconnected",
    "preempted", "died", "unavailable",
)  # fmt: skip
# Characters that are searched (judgement: what a line and its notice need).
_LINE_RANGE: Final = 1_500
_STALLED_RANGE: Final = 400
_TASK_RANGE: Final = 300
_MOST_TASKS: Final = 4


def find_missing_ranks(line: str, following: str = "") -> list[int]:
    """The ranks that a line reports as missing.

    Args:
        line: the line.
        following: the text after it, for notices of several lines.
    """
    low = line.lower()
    if not line.isascii() or contains_any(low, _MISSING_PARTS):
        for pattern in _MISSING:
            hit = pattern.search(line, 0, _LINE_RANGE)
            if hit is not None:
                return parse_ranks(hit["ranks"] or hit["slow"])
    stalled = _STALLED.search(f"{line}\n{following[:_STALLED_RANGE]}") if "Missing ranks" in line else None
    if stalled is not None:
        return [int(stalled["rank"])]
    if contains_any(low, _LOST_WORDS):
        tasks = _TASK.finditer(f"{line}\n{following[:_TASK_RANGE]}")
        return [int(one["rank"]) for one in tasks][:_MOST_TASKS]
    return []
