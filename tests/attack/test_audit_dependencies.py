"""The check for known vulnerabilities never reports success if nothing was checked."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "audit_dependencies.py"
SKIPPED = "No known vulnerabilities found\nName Skip Reason\nidna Dependency not found"


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        ("No known vulnerabilities found", 0, 0),
        ("Found 1 known vulnerability in 1 package", 1, 1),
        ("ERROR: Dependency not found on PyPI", 1, 2),
        (SKIPPED, 1, 2),
        ("", 0, 2),
    ],
)
def test_the_exit_code_tells_what_was_found(tmp_path: Path, said: str, code: int, expected: int) -> None:
    program = tmp_path / "uv"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, SCRIPT, "--uv", program, "x.lock"], capture_output=True, text=True, check=False
    )
    assert done.returncode == expected
    assert ("NOT CHECKED" in done.stderr) is (expected == 2)


def test_a_missing_program_is_not_success(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--uv", str(tmp_path / "missing"), "x.lock"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
