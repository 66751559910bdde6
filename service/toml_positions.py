"""Reads TOML that people write, and finds the line of a key, which the standard library's parser does not report."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

Path = Sequence[str | int]

# What a line end inside of is no end of a statement, and what opens and closes it. Of a valid text.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n', re.DOTALL
)


# A key of very many parts: tomllib takes time that grows with the square of their number.
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_LARGE = "a number that does not fit into 64 bits"
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{100}}")


def loads(text: str) -> dict[str, Any]:
    """The content of a TOML text.

    Raises:
        TOMLDecodeError: it is no TOML, nested so deeply that the parser takes minutes or ends by a RecursionError, or
            has a number that does not fit into 64 bits (no text can be made of one with thousands of digits).
    """
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError("a key of too many parts")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of int(), for thousands of digits
        raise tomllib.TOMLDecodeError(_TOO_LARGE) from None
    if not all(-(2**63) <= number < 2**63 for number in _integers(found)):
        raise tomllib.TOMLDecodeError(_TOO_LARGE)
    return found


def _integers(content: dict[str, Any]) -> Iterator[int]:
    """All integers at any depth."""
    waiting: list[Any] = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, int):
            yield one


def line_of(text: str, path: Path) -> int | None:
    """The line (1-based) of the statement that defines `path` in a valid TOML text.

    If the path does not exist (a required key is missing), the line of its nearest existing ancestor; None if that is
    the whole text.
    """
    known = _lines(text)
    return next((known[part] for depth in range(len(path), 0, -1) if (part := tuple(path[:depth])) in known), None)


@lru_cache(maxsize=2)
def _lines(text: str) -> Mapping[tuple[str | int, ...], int]:
    """The line of each path, by one pass: each statement is parsed once, alone."""
    found: dict[tuple[str | int, ...], int] = {}
    tables: dict[tuple[str | int, ...], int] = {}  # arrays of tables and their lengths
    table: tuple[str | int, ...] = ()
    for line, statement in _statements(text.replace("\r\n", "\n")):
        data = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = ()
            for key, value in _steps(data):
                table = _within((*table, key), tables)
                if isinstance(value, list):
                    whole = (*table[:-1],) if table and isinstance(table[-1], int) else table
                    found.setdefault(whole, line)
                    tables[whole] = tables.get(whole, 0) + 1
                    table = (*whole, tables[whole] - 1)
                found.setdefault(table, line)
        else:
            for path in _paths(data, table):
                found.setdefault(path, line)
    return found


def _within(path: tuple[str | int, ...], tables: Mapping[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """The path of what a header names: in an array of tables, its last one."""
    return (*path, tables[path] - 1) if path in tables else path


def _steps(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a header with what they hold: a table, or a list of one in an array of tables."""
    while data:
        key, value = next(iter(data.items()))
        yield key, value
        data = value if isinstance(value, dict) else {}


def _paths(data: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """All paths within a value."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each header and each key with its value, and the line on which it begins."""
    begin = depth = 0
    line = first = 1
    for token in _TOKEN.finditer(text + "\n"):
        shown = token[0]
        if shown in "[{":
            depth += 1
        elif shown in "]}":
            depth -= 1
        line += shown.count("\n")
        if shown == "\n" and depth == 0:
            yield first, text[begin : token.start()]
            begin, first = token.end(), line
