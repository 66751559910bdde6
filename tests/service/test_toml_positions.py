"""Line numbers of keys."""

import tomllib
from typing import Any

import pytest

from service.toml_positions import line_of, loads

TEXT = """# a comment
version = "1"

[limits]
# another
infra = 3
list = [
    1,
    2,
]
after.dotted = 1

[[rule]]
name = "a"

[[rule]]
name = "b"
when = { side = ["user"] }
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("version",), 2),
        (("limits", "infra"), 6),
        (("limits", "list"), 7),
        (("limits", "list", 1), 7),
        (("limits", "after", "dotted"), 11),
        (("rule", 0, "name"), 14),
        (("rule", 1, "name"), 17),
        (("rule", 1, "when", "side"), 18),
        (("rule", 1, "decision"), 16),  # missing: where its table begins
        (("nothing",), None),
    ],
)
def test_a_key_is_found_on_its_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


HOSTILE = r"""
a = '''
[no]
''' # a comment with "quotes
"b.c" . d = [ # ] }
  { x = "}" }, 2,
]
[[t.rows]]
[[t.rows]]
[t.rows.deep]
k = ~one \~ two
"~
[[t.rows.list]]
n = 1
[[t.rows.list]]
n = "a\"#b"
[u]
""".replace("~", '"""')


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 2),
        (("b.c",), 5),
        (("b.c", "d", 0, "x"), 5),
        (("t",), 8),
        (("t", "rows"), 8),
        (("t", "rows", 1), 9),
        (("t", "rows", 1, "deep"), 10),
        (("t", "rows", 1, "deep", "k"), 11),
        (("t", "rows", 1, "list", 1, "n"), 16),
        (("t", "rows", 1, "list", 1, "m"), 15),
        (("u",), 17),
        (("u", "x"), 17),
    ],
)
def test_statements_of_several_lines_and_tables_in_tables_are_found(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(HOSTILE, path) == line
    assert line_of(HOSTILE.replace("\n", "\r\n"), path) == line


def test_the_work_grows_with_the_length_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key parsed all lines before it again: a policy of 3 kB took a server more than 15 s, one of 200 kB hours."""
    parsed = 0

    def counted(text: str, load: Any = tomllib.loads) -> Any:
        nonlocal parsed
        parsed += len(text)
        return load(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    text = "\n".join(f"[table{number}]" for number in range(300))
    assert [line_of(text, (f"table{number}",)) for number in range(300)] == list(range(1, 301))
    assert parsed <= 2 * len(text)


@pytest.mark.parametrize("number", ["9" * 5_000, f"0x{'f' * 5_000}", str(2**63), str(-(2**63) - 1)])
@pytest.mark.parametrize("text", ["a = {}", "a = [[{{b = {}}}]]", "[[a]]\nb.c = {}"])
def test_a_number_that_toml_does_not_have_is_refused(text: str, number: str) -> None:
    """Numbers of more than 4,300 digits were an error of the program: a traceback, or HTTP 500."""
    with pytest.raises(tomllib.TOMLDecodeError, match="64 bits"):
        loads(text.format(number))


def test_every_number_of_64_bits_is_read() -> None:
    assert loads(f"a = [{2**63 - 1}, {-(2**63)}, 1e300]\nb = true") == {"a": [2**63 - 1, -(2**63), 1e300], "b": True}
