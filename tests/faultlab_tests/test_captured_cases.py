"""What was captured: honest, anonymous, and of programs that do not print their own evidence."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from classifiers.data import labelled_cases
from tests.faultlab import case_files, program
from tests.faultlab.__main__ import CAPTURED

FILES = case_files.case_files(CAPTURED)
_PREFIX = re.compile(r"^(?:\[[\w/,-]+\](?:<std\w+>)?:?\s?|\d+: )*")


@cache
def sources() -> dict[str, Path | None]:
    return {plan.id: plan.file for plan in program.load()}


def declared(case: dict[str, Any]) -> str:
    return str(case["provenance"]["run"]).rpartition("#")[0]


@cache
def sentences(file: Path) -> tuple[str, ...]:
    """The texts of 16 characters and more, with a space in them, that stand as literals in a Python program."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError:
        return ()
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    words = (text.strip() for text in texts)
    return tuple(text for text in words if len(text) >= 16 and " " in text and not text.startswith("/"))


def message(line: str) -> str:
    """What a root line says: without a launcher's prefix; of a JSON log line only the end of its exception's trace."""
    line = _PREFIX.sub("", line).strip()
    if line.startswith("{"):
        try:
            trace = json.loads(line).get("exception")
        except ValueError:
            return line
        return trace.strip().rpartition("\n")[2] if isinstance(trace, str) else line
    return line


def cases(file: Path) -> Iterator[dict[str, Any]]:
    for line in case_files.read_lines(file):
        yield json.loads(line)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_case_is_a_labelled_case_of_a_declared_program(file: Path) -> None:
    seen = set()
    for case in cases(file):
        parsed = labelled_cases.parse(case, case["id"])
        assert parsed.provenance["origin"] == "captured"
        assert parsed.id not in seen
        seen.add(parsed.id)
        family = program.PROGRAMS / str(case["provenance"]["program"]).partition("/")[0]
        if family.is_dir() and not list(family.glob("*.toml")):
            continue  # the family has a runner of its own (a scheduler's jobs)
        assert declared(case) in sources(), f"{case['id']}: no such program and variant is declared"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_program_prints_the_line_that_tells_its_failure(file: Path) -> None:
    for case in cases(file):
        source = sources().get(declared(case))
        line = case["labels"]["root_line"]
        if source is None or not line:
            continue
        result = message(line)
        text = source.read_text(encoding="utf-8")
        assert len(result) < 12 or result not in text, f"{case['id']}: {result}"
        if source.suffix == ".py":
            assert not [s for s in sentences(source) if s in result], f"{case['id']}: {result}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_tells_of_the_machine_that_captured_it(file: Path) -> None:
    text = "\n".join(case_files.read_lines(file))
    for result in (str(Path(__file__).parents[2]) + "/", sys.prefix, "zygote", "LAB_", "/tmp/fl", "faultlab"):
        assert result not in text, result


def test_packed_lines_are_the_lines_that_were_written(tmp_path: Path) -> None:
    lines = ['{"a": 1}', '{"b": "\u2028 in one line"}']
    for name in ("plain.jsonl", "packed.jsonl.zst"):
        case_files.write_lines(tmp_path / name, lines)
        assert case_files.read_lines(tmp_path / name) == lines
    assert [file.name for file in case_files.case_files(tmp_path)] == ["packed.jsonl.zst", "plain.jsonl"]
