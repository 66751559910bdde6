"""The words of each mitigation, filled with what the verdict knows; the texts stand in mitigations.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter

from classifiers import taxonomy
from classifiers.case import Verdict

LINE_SHOWN = 160


@dataclass(frozen=True, slots=True)
class _Text:
    code: str
    retry_outlook: tuple[str, ...]
    text: str
    slots: tuple[str, ...]


@cache
def _texts() -> tuple[_Text, ...]:
    data = tomllib.loads(files("service.recommend").joinpath("mitigations.toml").read_text(encoding="utf-8"))
    return tuple(
        _Text(
            row["code"],
            tuple(row.get("retry_outlook", ())),
            row["text"],
            tuple(slot for _, slot, _, _ in Formatter().parse(row["text"]) if slot),
        )
        for row in data["text"]
    )


def _slots(code: str, verdict: Verdict) -> dict[str, str]:
    axes = taxonomy.load()
    found = {"nodes": "", "line": "", "action": "", "fix": "", "checkpoint": ""}
    if verdict.suspect is not None and verdict.suspect.node:
        found["nodes"] = verdict.suspect.node
    first = next((line.text for line in verdict.evidence if line.role == "initiating"), "")
    found["line"] = first.strip()[:LINE_SHOWN]
    if verdict.category is not None:
        actions = axes.categories[verdict.category].extra.get("actions", [])
        found["action"] = actions[0] if actions else ""
    if verdict.symptom is not None:
        fixes = [fix["fix"] for fix in axes.symptoms[verdict.symptom].extra["fixes"] if fix.get("mitigation") == code]
        found["fix"] = f"most often: {fixes[0]}" if fixes else ""
    if verdict.progress is not None and verdict.progress.checkpoint:
        found["checkpoint"] = verdict.progress.checkpoint
    return found


def mitigation(code: str, verdict: Verdict) -> str:
    """What to do, in a sentence.

    Raises:
        KeyError: the code has no text.
    """
    slots = _slots(code, verdict)
    for text in _texts():
        fits = text.code == code and (not text.retry_outlook or verdict.retry_outlook in text.retry_outlook)
        if fits and all(slots[slot] for slot in text.slots):
            return text.text.format(**slots)
    raise KeyError(code)
