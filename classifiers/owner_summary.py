"""Explanations for the owner of a job, from owner_summary.toml, and the platform symptom (Gao et al., table 1)."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from classifiers import taxonomy
from classifiers.contracts import Case, Suspect
from classifiers.suspected_place import suspected_place
from classifiers.taxonomy import PlatformSymptom

_LINE_LENGTH: Final = 200  # characters (judgement)


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("classifiers").joinpath("owner_summary.toml").read_text(encoding="utf-8"))


def _where(suspect: Suspect | None, cause: str, *, abstained: bool) -> str:
    place = suspected_place(suspect, taxonomy.load().side_of(cause), abstained=abstained)
    parts = [f"rank {place.rank}"] if place.rank is not None else []
    parts += [f"GPU {place.gpu}"] if place.gpu is not None else []
    parts += [f"node {place.node}"] if place.node is not None else []
    return f" ({', '.join(parts)})" if parts else ""


def explanation(case: Case, cause: str, category: str | None, *, abstained: bool) -> str:
    """What happened, in words for the owner, with the first initiating line if there is one."""
    data = _data()
    parts = [data["cause"][cause].replace("{where}", _where(case.suspect, cause, abstained=abstained))]
    if category is not None:
        parts.append(data["category"][category])
    if abstained:
        parts.append(data["tail"]["abstained"])
    leading = next((line for line in case.evidence if line.role == "initiating"), None)
    if leading is not None:
        text = leading.text if len(leading.text) <= _LINE_LENGTH else leading.text[: _LINE_LENGTH - 1] + "…"
        parts.append(data["tail"]["line"].replace("{line}", text))
    return " ".join(parts)


def best_guess(text: str) -> str:
    """An explanation of an undecided verdict that begins with the doubt instead of ending with it."""
    doubt: str = _data()["tail"]["abstained"]
    head, found, tail = text.partition(doubt)
    return " ".join(part.strip() for part in ("Best guess:", head, tail) if part.strip()) if found else text


def sentence(cause: str, suspect: Suspect | None) -> str:
    """A sentence on a cause for the owner, with the place where the failure began."""
    sentence_of_cause: str = _data()["cause"][cause]
    return sentence_of_cause.replace("{where}", _where(suspect, cause, abstained=False))


def platform_symptom(case: Case, cause: str, symptom: str | None) -> PlatformSymptom:
    """How the failure appeared to the owner."""
    rules = _data()["platform_symptom"]
    words = f"{case.job.reason or ''} {case.job.message or ''}".lower()
    if any(word in words for word in rules["submission_words"]):
        return "submission_failure"
    found = (
        rules["status"].get(case.job.status)
        or rules["symptom"].get(symptom or "")
        or rules["cause"].get(cause)
        or "crash"
    )
    return cast("PlatformSymptom", found)
