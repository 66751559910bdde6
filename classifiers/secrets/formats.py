"""The formats of secrets, read from `classifiers/data/secrets/*.toml`.

Each `[[format]]` has a `name`, a `source` and one way to recognise it:

- `begins`, `rest`: the secret begins with a fixed text; `rest` is a regular expression for what follows. All of it is
  the secret, except for a `begins` that ends with `/` or `=`, which stays.
- `near`, `value`: the name of a service, at most 20 further characters of a name, a separator such as `=` or `:`, and
  a value of this form; after a space alone the value has to be random. Only the value is the secret.
- `around`, `before`, `rest`: as `begins`, but with a part of the secret before the fixed text.
- `word`: a whole word of letters, digits and `_-.` has this form, at least 20 characters of it; for tokens without a
  fixed beginning.
- `command`, `rest`: a fixed text in any case; `rest` is matched after it, and each group whose name begins with
  `secret` is a secret. `{word}` is one argument of a shell, `{skip}` stands for other arguments before it; `{below}`
  is what a command prints: the rest of its line, and a word of letters and digits that the next line has alone.

Several fixed texts with the same `rest`, `value` or `before` are a list of texts.
"""

import base64
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

Kind = Literal["begins", "near", "around", "command", "word"]
_WITH_TEXT: Final[tuple[Kind, ...]] = ("begins", "near", "around", "command")

_QUOTE = r"\\?[\"'`]"
_BETWEEN = rf"[ \t\w.-]{{0,20}}?(?:{_QUOTE})?\]?[ \t]{{0,3}}(?:=>|:{{1,3}}=|\?=|\|\||=|>|:|,)[ \t=]{{0,4}}(?:{_QUOTE})?"
_SKIP = r"(?:[^\n|;&\\]|\\.|\\\n){0,300}?"  # a backslash continues the line
# A quote, also in a text between quotes: with backslashes before it, or as shells write it.
_ANY_QUOTE = r"""(?:'\\{1,4}''|'"'"'|\\{0,3}["'])?"""
_BELOW = (
    r"[^\n]{0,300}\n"
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.-]{1,32}\[\d{1,8}\]: |[\w.-]{1,60} {1,4}\| )?"
    r"(?P<secret>(?=[a-z]{0,255}[^a-z\s])(?![\w.-]{1,60}[:/]|[-+*#$>/~.@<({\[%])[^\s]{8,4096})[ \t\r]{0,4}(?=\n|\Z)"
)
_AROUND_MOST = 128  # characters before the fixed text of a format
_PART = re.compile(
    r"\(\?<![^)]+\)|(?P<one>\[[^\]]+\]|\\.|[^\\\[\](){}|*+?.])(?:\{(?P<least>\d+)(?:,(?P<most>\d+))?\})?"
)
# The longest formats come first where several begin with the same text.
_SHORTEST_FOR_BASE64 = 4  # characters; what a shorter text becomes in base64 occurs by chance


@dataclass(frozen=True, slots=True)
class SecretFormat:
    """One format. `marker` is the fixed text in lower case; `pattern` is a regular expression that begins with it."""

    name: str
    kind: Kind
    marker: str
    pattern: str
    source: str
    text: str  # the fixed text as published
    before: tuple[int, int] = (0, 0)  # the fewest and the most characters of the secret before the fixed text


@cache
def secret_formats() -> tuple[SecretFormat, ...]:
    """All formats.

    Raises:
        ValueError: an entry of a data file is incomplete.
    """
    found: list[SecretFormat] = []
    for file in sorted(files("classifiers").joinpath("data", "secrets").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            entries = tomllib.loads(file.read_text(encoding="utf-8"))["format"]
            found += [_format(one, file.name) for entry in entries for one in _alone(entry)]
    return tuple(found)


@cache
def known_words() -> re.Pattern[str]:
    """One pattern of all words that are tokens as a whole."""
    return re.compile(
        "|".join(f"(?:{one.pattern})" for one in secret_formats() if one.kind == "word").replace("?P<secret>", "?:")
    )


def _alone(entry: dict[str, Any]) -> Iterator[dict[str, str]]:
    """An entry once for each of its fixed texts."""
    kind = next((kind for kind in _WITH_TEXT if isinstance(entry.get(kind), list)), None)
    if kind is None:
        yield entry
        return
    for text in entry[kind]:
        yield {**entry, kind: text, "name": f"{entry['name']}: {text}"}


def _format(entry: dict[str, str], file: str) -> SecretFormat:
    try:
        name, source = entry["name"], entry["source"]
        if "begins" in entry:
            text, rest = entry["begins"], entry["rest"]
            fixed = re.escape(text)
            whole = f"{fixed}(?P<secret>{rest})" if text[-1] in "/=" else f"(?P<secret>{fixed}(?:{rest}))"
            return SecretFormat(name, "begins", text.lower(), whole, source, text)
        if "around" in entry:
            text = entry["around"]
            pattern = f"(?P<secret>{entry['before']}{re.escape(text)}{entry['rest']})"
            return SecretFormat(name, "around", text.lower(), pattern, source, text, _width(entry["before"]))
        if "word" in entry:
            return SecretFormat(name, "word", "", f"(?P<secret>{entry['word']})", source, "")
        if "near" in entry:
            text = entry["near"]
            pattern = rf"(?i:{re.escape(text)})(?:{_BETWEEN}|(?P<gap> ))(?P<secret>{entry['value']})(?![\w/+-])"
            return SecretFormat(name, "near", text.lower(), pattern, source, text)
        text, rest = (
            entry["command"],
            entry["rest"].replace("{skip}", _SKIP).replace("{below}", _BELOW).replace("[\"']?", _ANY_QUOTE),
        )
    except KeyError as missing:
        raise ValueError(f"{file}: {entry}: expected {missing}") from None
    for number in range(rest.count("{word}")):
        rest = rest.replace("{word}", _word(f"secret{number or ''}"), 1)
    return SecretFormat(name, "command", text.lower(), f"(?i:{re.escape(text)}){rest}", source, text)


def _width(pattern: str) -> tuple[int, int]:
    """The fewest and the most characters that a pattern takes: characters and classes, each with a count or none.

    Raises:
        ValueError: it has other parts, or takes too many characters.
    """
    fewest = most = place = 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            raise ValueError(f"{pattern}: expected characters and classes with counts at {pattern[place:]!r}")
        if part["one"]:
            least = int(part["least"] or 1)
            fewest, most = fewest + least, most + int(part["most"] or least)
        place = part.end()
    if most > _AROUND_MOST:
        raise ValueError(f"{pattern}: expected at most {_AROUND_MOST} characters")
    return fewest, most


def _word(group: str) -> str:
    """One argument of a shell: quoted with its quotes inside the group, or up to white space or an operator."""
    quoted = r"\\?\"[^\"\n]{1,1024}\"|'[^'\n]{1,1024}'"
    return rf"(?P<{group}>{quoted}|[^\s\"'|;&]{{1,1024}})"


@cache
def base64_markers() -> tuple[str, ...]:
    """What the fixed texts of the formats become in hexadecimal digits, and in base64 for each of the three alignments.

    In lower case.
    """
    texts = [
        secret_format.text
        for secret_format in secret_formats()
        if secret_format.kind == "begins" and len(secret_format.text) >= _SHORTEST_FOR_BASE64
    ]
    texts += [
        "-----BEGIN",
        "password",
        "PASSWORD",
        "passwd",
        "secret",
        "SECRET",
        "api_key",
        "API_KEY",
        "Authorization: ",
    ]
    texts += ["eyJhbGciOi", "eyJ0eXAiOi"]  # beginnings of web tokens
    found = {text.encode().hex() for text in texts}
    for text in texts:
        for before in range(3):
            encoded = base64.b64encode(b"\0" * before + text.encode()).decode().rstrip("=")
            # Characters that also depend on what stands before or after are left out.
            stable = encoded[(before * 8 + 5) // 6 : (before + len(text)) * 8 // 6].lower()
            if len(stable) >= _SHORTEST_FOR_BASE64:
                found.add(stable)
    return tuple(sorted(found))
