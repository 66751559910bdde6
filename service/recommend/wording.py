"""The words of each mitigation, filled with what the verdict knows; the texts stand in mitigations.toml."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter

from classifiers import taxonomy
from classifiers.case import Verdict

LINE_SHOWN = 160


@dataclass(frozen=True, slots=True)
class _Text:
    retry_outlook: tuple[str, ...]
    text: str
    slots: tuple[str, ...]


@cache
def _texts() -> dict[str, list[_Text]]:
    data = tomllib.loads(files("service.recommend").joinpath("mitigations.toml").read_text(encoding="utf-8"))
    texts: dict[str, list[_Text]] = {}
    for row in data["text"]:
        slots = tuple(slot for _, slot, _, _ in Formatter().parse(row["text"]) if slot)
        texts.setdefault(row["code"], []).append(_Text(tuple(row.get("retry_outlook", ())), row["text"], slots))
    return texts


class Words:
    """The words for one verdict; `nodes` are those to leave out."""

    def __init__(self, verdict: Verdict, nodes: Sequence[str]) -> None:
        axes = taxonomy.load()
        progress = verdict.progress
        first = next((line.text for line in verdict.evidence if line.role == "initiating"), "")
        actions = axes.categories[verdict.category].extra.get("actions") if verdict.category is not None else None
        self._outlook = verdict.retry_outlook
        self._fixes = axes.symptoms[verdict.symptom].extra["fixes"] if verdict.symptom is not None else ()
        self._slots = {
            "nodes": ", ".join(nodes),
            "line": first.strip()[:LINE_SHOWN],
            "action": actions[0] if actions else "",
            "checkpoint": (progress.checkpoint if progress is not None else None) or "",
        }

    def mitigation(self, code: str) -> str:
        """What to do, in a sentence.

        Raises:
            KeyError: the code has no text.
        """
        fix = next((fix["fix"] for fix in self._fixes if fix.get("mitigation") == code), "")
        slots = self._slots | {"fix": f"most often: {fix}" if fix else ""}
        for text in _texts().get(code, ()):
            fits = not text.retry_outlook or self._outlook in text.retry_outlook
            if fits and all(slots[slot] for slot in text.slots):
                return text.text.format_map(slots)
        raise KeyError(code)
