"""The strongest features of a verdict in words, from feature_words.toml."""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from service.web.pages import display_names

SHOWN = 8


@cache
def _table() -> dict[str, Any]:
    text = files("service.web.pages.failure").joinpath("feature_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def reasons(weighed: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """The features that speak for the cause, each with its strength in words, strongest first and each once."""
    found: dict[str, str] = {}
    for name, weight in weighed:
        if weight > 0 and name != "bias":
            found.setdefault(words(name), strength(weight))
    return list(found.items())[:SHOWN]


def words(name: str) -> str:
    """A feature in words; its name if its prefix is unknown."""
    prefix, colon, rest = name.partition(":")
    text = _table()["prefix"].get(prefix + colon)
    if text is None or not rest:
        return name
    return str(text).format(name=rest.replace("=", " "), title=display_names.title(rest))


def strength(weight: float) -> str:
    """A weight in words."""
    return next(str(name) for name, least in _table()["strength"].items() if weight >= least)
