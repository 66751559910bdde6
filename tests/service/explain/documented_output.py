"""The outputs of `faultline explain` in the documents; `python -m tests.service.explain.documented_output` renews them.

A documented output is a code block that begins with `$ faultline explain LOG`, or with `$ kubectl ... | faultline
explain -` for a log on standard input. The logs are in tests/data/explain/.
"""

import contextlib
import io
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from service.__main__ import main

ROOT = Path(__file__).parents[3]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "explain.md")
LOGS = ROOT / "tests" / "data" / "explain"
WIDTH = "100"
_BLOCK = re.compile(
    r"^```\n\$ (?P<command>[^\n]*faultline explain (?P<log>[^\n]+))\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL
)
_ON_STANDARD_INPUT = "index.log"


@dataclass(frozen=True, slots=True)
class Example:
    """One output in a document: the command's argument and what the document shows."""

    document: Path
    log: str
    output: str


def examples() -> list[Example]:
    """Every documented output."""
    return [
        Example(document, found["log"], found["output"])
        for document in DOCUMENTS
        for found in _BLOCK.finditer(document.read_text(encoding="utf-8"))
    ]


def printed(log: str, *options: str) -> str:
    """What the command prints for a documented log."""
    out = io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO((LOGS / _ON_STANDARD_INPUT).read_bytes()))
    with (
        contextlib.chdir(LOGS),
        contextlib.redirect_stdout(out),
        mock.patch.object(sys, "stdin", stdin),
        mock.patch.dict(os.environ, {"COLUMNS": WIDTH}),
    ):
        assert main(["explain", log, *options]) == 0
    return out.getvalue()


def renew() -> None:
    """Write what the command prints now into the documents."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        text = _BLOCK.sub(lambda found: f"```\n$ {found['command']}\n{printed(found['log'])}```", text)
        document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()
