"""Taxonomy entries for form choices."""

from classifiers import taxonomy
from service.recommend import ranking


def by_side() -> dict[str, list[taxonomy.Entry]]:
    """The causes for a select, grouped by side."""
    axes = taxonomy.load()
    return {side: [entry for entry in axes.causes.values() if entry.extra["side"] == side] for side in axes.sides}


def cause_choice(code: str) -> dict[str, str | None]:
    """Side and cause of a form choice: a cause, or a side with unknown cause; neither if empty."""
    if code in taxonomy.load().sides:
        return {"side": code, "cause": None}
    return {"side": None, "cause": code or None}


def categories() -> list[taxonomy.Entry]:
    """The failure categories."""
    return list(taxonomy.load().categories.values())


def mitigations() -> list[taxonomy.Entry]:
    """The ten mitigations that a person can select."""
    return [taxonomy.load().mitigations[code] for code in ranking.codes()]


def symptoms() -> list[taxonomy.Entry]:
    """The distributed symptoms."""
    return list(taxonomy.load().symptoms.values())
