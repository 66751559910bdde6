"""Formats see the text in strings of JSON and of programs as it was before its quotes and line ends were escaped."""

import json

import pytest

from classifiers.redaction import redact
from classifiers.secrets.unescaped import Unescaped

HIDDEN = "Walrus-T1de4471"


@pytest.mark.parametrize(
    "text",
    [
        f'sshpass -p "{HIDDEN}" ssh x',
        f'["mysql", "-uroot", "-p{HIDDEN}"]',
        f'a001 LOGIN "ana" "{HIDDEN}"',
        f"password: |\n    {HIDDEN}\n  user: ana",
        f'ALTER USER ana IDENTIFIED BY "{HIDDEN}";',
        f'user.set_password("{HIDDEN}")',
        f"send(b'AUTH {HIDDEN}\\r\\n')",
    ],
)
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_secret_in_strings_within_strings_is_removed(text: str, levels: int) -> None:
    for _ in range(levels):
        text = json.dumps({"message": text})
    cleaned = redact(text)
    assert HIDDEN not in cleaned
    assert redact(cleaned) == cleaned
    assert cleaned.startswith("{") == (levels > 0)


def test_each_position_has_its_place_in_the_text() -> None:
    text = 'x "a\\n\\"b\\u0026c" y\nplain\\tline'
    inner = Unescaped(text)
    assert inner.text.split("\n\n\n")[:2] == ['a\n"b&c', "plain\tline"]
    for sign in "abc":
        assert text[inner.place(inner.text.index(sign))] == sign
    assert inner.place(inner.text.index('"b')) == text.index('\\"b')
    assert Unescaped("C:\\data and plain").text == ""


@pytest.mark.parametrize("unit", ['\\"', '"\\"', '"a\\n', "\\\\n"])
def test_a_text_of_quotes_and_escapes_alone_can_be_redacted(unit: str) -> None:
    text = unit * (60_000 // len(unit))  # the time would grow with its square if each quote were followed
    assert len(redact(text)) <= len(text)
