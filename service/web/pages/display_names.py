"""Display names of codes, from display_names.toml and the taxonomy."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from classifiers import taxonomy


@cache
def table() -> dict[str, Any]:
    """All display names; read once."""
    text = files("service.web.pages").joinpath("display_names.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def confidence(value: float, *, abstained: bool) -> str:
    """The display name of a confidence, as pages show it: in whole percent."""
    if abstained:
        return "undecided"
    bands = table()["confidence"]
    return str(next((band for band in bands if round(value, 2) >= band["floor"]), bands[-1])["says"])


def word(kind: str, code: str | None, part: str | None = None) -> str:
    """The display name of a code; without one, the code itself with spaces."""
    found = table()[kind].get(code)
    if found is None:
        return (code or "").replace("_", " ")
    return str(found if part is None else found[part])


def decision(code: str, *, status: str = "", held_by: str | None = None) -> str:
    """The decision of an advice in words, such as "Resubmit now".

    Args:
        code: the decision.
        status: how the job ended.
        held_by: what a hold waits for, as in the advice.
    """
    special = status if code == "stop" else held_by if code == "hold" else None
    return str(table()["decision_says"].get(special) or word("decision", code, "says"))


def filter_value(name: str, value: str) -> str:
    """The display name of a filter's value."""
    if name in {"cause", "symptom", "category"}:
        return title(value)
    if name == "status":
        return value.replace("_", " ")
    return str(table()["filter_value"].get(name, {}).get(value, value))


def title(code: str | None) -> str:
    """The title of a taxonomy code of any axis; the code itself if it is unknown."""
    return "" if code is None else taxonomy.load().title_of(code)


def definition(code: str | None) -> str:
    """The definition of a taxonomy code; empty if it is unknown."""
    axes = taxonomy.load()
    for axis in (axes.causes, axes.categories, axes.symptoms):
        if code is not None and code in axis:
            return axis[code].definition
    return ""
