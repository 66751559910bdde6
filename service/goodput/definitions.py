"""The definitions of goodput figures, from definitions.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Source:
    """Where a definition comes from; `url` is None for own definitions."""

    title: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Definition:
    """The title, text and source of one figure."""

    key: str
    title: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Category:
    """A category of lost time of the goodput library; `measured` names the figures that fall under it."""

    code: str
    title: str
    measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definitions:
    """All definitions: figures by key, and the categories in display order."""

    figures: dict[str, Definition]
    categories: tuple[Category, ...]


@cache
def load() -> Definitions:
    """The definitions as packaged."""
    data = tomllib.loads(files("service.goodput").joinpath("definitions.toml").read_text(encoding="utf-8"))
    sources = {key: Source(one["title"], one.get("url")) for key, one in data["source"].items()}
    return Definitions(
        {
            key: Definition(key, one["title"], one["text"], sources[one["source"]])
            for key, one in data["figure"].items()
        },
        tuple(Category(one["code"], one["title"], tuple(one["measured"])) for one in data["category"]),
    )
