"""Seeded mutations of records: of their JSON structure and of their bytes."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

FORMATS = Path(__file__).parents[1] / "data" / "formats"
# Fields that identify the job in one of the formats; a fresh value makes the record another job.
IDENTITIES = ("job_id", "jobid", "SLURM_JOB_ID", "submission_id", "uid", "id", "event_id")
DEEPEST = 200  # more levels than the service accepts, fewer than json can write
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63), 1.5, -0.0, 1e308, "", " ", "0", "null"),
    *("\x00", "\ud800", "\ufffd", "\u202e", "é" * 200, "x" * 5_000, "9" * 400, "2026-13-45T99:99:99Z"),
    *("2026-11-20T03:41:57", "0001-01-01T00:00:00+14:00", "../../etc/passwd", "file:///etc/shadow", "a\nb", "\x1b[2J"),
    *("gpu[1-99999999]", "gpu[", "1:0:0", "Unknown", "{}", "'; DROP TABLE jobs; --", "<script>", "%s%n", "{{7*7}}"),
)


def native(number: int) -> dict[str, Any]:
    """A record of the native format with every kind of optional field."""
    return {
        "cluster": "fuzz",
        "job_id": f"native-{number}",
        "attempt": number % 3,
        "status": ("failed", "timeout", "succeeded", "cancelled", "out_of_memory")[number % 5],
        "user": "ana",
        "uid": 4107,
        "gpus": 8,
        "nodes": ["gpu001", "gpu002"],
        "started_at": "2026-11-20T01:00:00Z",
        "ended_at": "2026-11-20T03:41:57Z",
        "requested": {"cpus": 8, "memory_bytes": 1 << 36},
        "checkpoint": {"uri": "s3://runs/ckpt-100", "step": 100, "at": "2026-11-20T03:00:00Z"},
        "topology": {"gpu001": {"rack": "r1"}},
        "labels": {"faultline/resubmit": "auto", "team": "vision"},
        "node_events": [{"at": "2026-11-20T03:41:50Z", "node": "gpu001", "source": "kernel", "text": "NVRM: Xid 79"}],
        "logs": [
            {"rank": 0, "node": "gpu001", "stream": "stderr", "tail": "step 1\nRuntimeError: CUDA error: ECC\n"},
            {"rank": 1, "uri": "file:///nowhere/rank1.log"},
            {"kind": "flight_recorder", "rank": 1, "tail": '{"entries": []}'},
        ],
    }


def odd_values(number: int, count: int = 60) -> list[Any]:
    """Random JSON values of hypothesis; the same for the same seed."""
    found: list[Any] = []
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40)
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5)
    )

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(values)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


class Mutator:
    """Makes mutated records; the same seed gives the same records.

    Args:
        seed: of the random choices.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._odd = [*SCALARS, *odd_values(seed)]
        self._bases = [path.read_bytes() for path in sorted(FORMATS.glob("*.json"))]
        self._number = 0

    def record(self) -> bytes:
        """The next record: unchanged, with changed structure, or with changed bytes."""
        rng = self._rng
        self._number += 1
        if rng.random() < 0.4:
            base = native(self._number)
        else:
            base = identified(json.loads(rng.choice(self._bases)), self._number)
        kind = rng.random()
        if kind < 0.1:
            return encoded(base)
        if kind < 0.6:
            for _ in range(rng.choice((1, 1, 2, 5))):
                base = self._changed(base)
            return encoded(base)
        data = encoded(base)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            data = rng.choice(BYTES)(data, rng)
        return data

    def _changed(self, value: Any) -> Any:
        """Change one place of a JSON value: remove, replace, rename, repeat, nest or move it."""
        rng = self._rng
        if depth(value) > DEEPEST:
            return value
        parent, key = rng.choice(places(value) or [(None, None)])
        if parent is None:
            return rng.choice(self._odd)
        kind = rng.randrange(6)
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, dict):
            parent[f"{key}{rng.choice(('', 's', '_', chr(0)))}"] = parent.pop(key)
        elif kind == 2:
            parent[key] = [copy.deepcopy(parent[key]) for _ in range(rng.choice((0, 2, 50)))]
        elif kind == 3:
            for _ in range(rng.choice((1, 20, 150))):
                parent[key] = {"a": parent[key]}
        elif kind == 4:
            other, name = rng.choice(places(value))
            parent[key] = copy.deepcopy(other[name])
        else:
            parent[key] = copy.deepcopy(rng.choice(self._odd))
        return value


def identified(base: Any, number: int) -> Any:
    """The record as one of another job: the first field that identifies one gets another value."""
    for parent, key in places(base):
        if key in IDENTITIES and isinstance(parent[key], str | int):
            parent[key] = f"{parent[key]}-{number}" if isinstance(parent[key], str) else 1_000_000 + number
            return base
    return base


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value as its container and key."""
    found: list[tuple[Any, Any]] = []
    level = [value]
    while level and len(found) < 2_000:
        one = level.pop()
        if isinstance(one, dict):
            found += [(one, key) for key in one]
            level += [inner for inner in one.values() if isinstance(inner, dict | list)]
        elif isinstance(one, list):
            found += [(one, index) for index in range(len(one))]
            level += [inner for inner in one if isinstance(inner, dict | list)]
    return found


def depth(value: Any) -> int:
    """The number of levels of containers in a JSON value."""
    levels = 0
    level = [value] if isinstance(value, dict | list) else []
    while level:
        levels += 1
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return levels


def encoded(value: Any) -> bytes:
    """JSON as bytes; a lone surrogate becomes an escape."""
    return json.dumps(value).encode()


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 8, 64)) :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    part = rng.choice((b'"', b"\\", b"{", b"}", b"[", b",", b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"1e999"))
    return data[:at] + part * rng.choice((1, 1, 1, 300)) + data[at:]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at : at + rng.choice((4, 40, 400))] * 2 + data[at:]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _flip, _cut, _remove, _insert, _repeat)
