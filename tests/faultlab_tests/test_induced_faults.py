"""Faults do to files and ports what they say."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faultlab import induced_faults
from tests.labs.ports import free_port


def test_files_are_written_cut_garbled_closed_and_removed(tmp_path: Path) -> None:
    written: list[dict[str, Any]] = [
        {"kind": "write", "at": "a/b.bin", "text": "0123456789"},
        {"kind": "garble", "at": "a/b.bin", "offset": 8, "bytes": 4},
        {"kind": "truncate", "at": "a/b.bin", "bytes": 6},
        {"kind": "chmod", "at": "a/b.bin", "mode": "400"},
        {"kind": "write", "at": "c.bin", "hex": "ff00"},
    ]
    with ExitStack() as stack:
        induced_faults.before(written, tmp_path, stack)
    assert (tmp_path / "a/b.bin").read_bytes() == b"012345"
    assert (tmp_path / "a/b.bin").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "c.bin").read_bytes() == b"\xff\x00"
    induced_faults.alter({"kind": "remove", "at": "a"}, tmp_path)
    assert not (tmp_path / "a").exists()


def test_a_taken_port_is_free_again_afterwards(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        induced_faults.before([{"kind": "port_taken", "port": str(port), "host": "127.0.0.1"}], tmp_path, stack)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))


def test_an_unknown_fault_is_refused_and_an_impossible_one_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack, pytest.raises(ValueError, match="earthquake"):
        induced_faults.before([{"kind": "earthquake"}], tmp_path, stack)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with ExitStack() as stack, pytest.raises(induced_faults.Impossible, match="root"):
        induced_faults.before([{"kind": "tmpfs", "at": "x", "kb": 4}], tmp_path, stack)
    with ExitStack() as stack, pytest.raises(induced_faults.Impossible, match="root"):
        induced_faults.inside([{"kind": "offline"}], 0, None, "t", stack)


def test_steps_are_for_their_rank_only_and_limits_come_last() -> None:
    declared: list[dict[str, Any]] = [
        {"kind": "rlimit", "resource": "nofile", "value": 64, "rank": 1},
        {"kind": "user"},
    ]
    with ExitStack() as stack:
        assert induced_faults.inside(declared, 0, None, "t", stack) == [["user"]]
        assert induced_faults.inside(declared, 1, None, "t", stack) == [["rlimit", "nofile", 64], ["user"]]
