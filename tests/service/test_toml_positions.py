"""Line numbers of keys."""

import pytest

from service.toml_positions import line_of

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
