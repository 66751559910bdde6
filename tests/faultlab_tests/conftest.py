"""A family of tiny programs in a temporary folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faultlab.program import Plan, read

Declare = Callable[..., Plan]

_HEAD = """
framework = "plain"
environment = ""

[[program]]
name = "one"
file = "one.py"
path = "test.one"
kind = "test"
labels = { cause = "USER.1", category = "GC.1", symptom = "", retry = "futile" }
"""


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Declare one program: its code, further TOML lines of its declaration; by default its root line has Error."""

    def make(code: str, more: str = "") -> Plan:
        folder = tmp_path / "family"
        folder.mkdir(exist_ok=True)
        (folder / "one.py").write_text(code, encoding="utf-8")
        root = "" if "root =" in more else 'root = { line = "Error" }\n'
        (folder / "family.toml").write_text(_HEAD + root + more, encoding="utf-8")
        (plan,) = read(folder / "family.toml")
        return plan

    return make
