"""Passwords after names that are not ASCII, such as `密码: ...`, which the search for literals can not find."""

import re
from collections.abc import Iterator
from typing import Final

# Chinese (three words), Japanese, Korean, Russian and Polish. Each costs a search of a text that is not ASCII.
_NAMES: Final = ("密码", "密碼", "口令", "パスワード", "비밀번호", "пароль", "hasło")
_VALUE: Final = re.compile(
    r"[\"'`]?[ \t]{0,20}(?:[:=\uff1a\uff1d是为為は]|->|=>"
    r"|(?:(?:для|dla|do) [^\n:=]{1,60}?)?(?::|(?: |\b)(?:to|jest|это|—|-)(?= )))[ \t]{0,4}"
    r"(?:\"(?P<secret>[^\"\n]{4,256})\"|'(?P<secret1>[^'\n]{4,256})'|(?P<secret2>[!-~]{4,256}))"
)


def passwords(text: str, low: str) -> Iterator[tuple[int, int]]:
    """The spans of values after such a name, not in order; `low`: the text in lower case, as long as the text."""
    for name in _NAMES:
        place = low.find(name)
        while place >= 0:
            hit = _VALUE.match(text, place + len(name))
            if hit is not None:
                yield hit.span(str(hit.lastgroup))
            place = low.find(name, place + len(name))
