"""Codes → words for people, from display_names.toml and the taxonomy."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from classifiers import taxonomy


@cache
def table() -> dict[str, Any]:
    """All words; read once."""
    text = files("service.web.pages").joinpath("display_names.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def confidence(value: float, *, abstained: bool) -> str:
    """How sure a verdict is, in words."""
    if abstained:
        return "undecided"
    return next(str(band["says"]) for band in table()["confidence"] if value >= band["floor"])


def word(kind: str, code: str | None, part: str | None = None) -> str:
    """The word for a code; a code that has none is shown as it is, with spaces."""
    found = table()[kind].get(code)
    if found is None:
        return (code or "").replace("_", " ")
    return str(found if part is None else found[part])


def title(code: str | None) -> str:
    """A taxonomy code's title, of whichever axis; the code itself where it is not known."""
    if code is None:
        return ""
    axes = taxonomy.load()
    for axis in (axes.causes, axes.categories, axes.symptoms, axes.mitigations):
        if code in axis:
            return axis[code].title
    return code


def definition(code: str | None) -> str:
    """A taxonomy code's definition, empty where it is not known."""
    axes = taxonomy.load()
    for axis in (axes.causes, axes.categories, axes.symptoms):
        if code is not None and code in axis:
            return axis[code].definition
    return ""
