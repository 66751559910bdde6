"""The tests that the security documents name exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["docs/security.md", "docs/asvs.md"])
def test_every_named_test_exists(document: str) -> None:
    named = re.findall(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`", (ROOT / document).read_text(encoding="utf-8"))
    assert named
    for path, function in named:
        assert (ROOT / path).is_file(), path
        if function:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, function


def test_every_chapter_of_the_standard_is_there() -> None:
    text = (ROOT / "docs/asvs.md").read_text(encoding="utf-8")
    assert re.findall(r"^## V(\d+) ", text, re.MULTILINE) == [str(number) for number in range(1, 18)]
