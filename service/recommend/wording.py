"""Texts of mitigations and rules, filled with details: from mitigations.toml and reasons.toml."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from classifiers import taxonomy
from classifiers.contracts import Evidence, Verdict
from classifiers.taxonomy import Decision
from service.contracts.advice import EvaluatedRule
from service.formatting import whole_words
from service.recommend.rule_chain import RuleResult, Trace

LINE_SHOWN = 160
_ENDS = frozenset({"slurm.oom", "slurm.time-limit"})  # signatures of lines that say how the scheduler ended the job

_OTHERS = "Others"  # the title of symptoms that have nothing in common
_OF_SEVERAL = re.compile(r"distributed|communication|between devices|device assignment|single-device|network")


@dataclass(frozen=True, slots=True)
class _Text:
    decision: tuple[str, ...]
    retry_outlook: tuple[str, ...]
    side: tuple[str, ...]
    open: tuple[str, ...]
    text: str
    slots: tuple[str, ...]
    filled: str  # the text itself if it has no slots
    worked: bool  # whether it is the mitigation itself, which may have worked before

    def fits(self, verdict: Verdict, decision: str, slots: Mapping[str, str], why_open: str) -> bool:
        """Whether its conditions hold and all its slots have values. `why_open`: cancelled, undecided, or empty."""
        return (
            (not self.decision or decision in self.decision)
            and (not self.retry_outlook or verdict.retry_outlook in self.retry_outlook)
            and (not self.side or verdict.side in self.side)
            and (not self.open or why_open in self.open)
            and (not self.slots or all(slots[slot] for slot in self.slots))
        )

    def with_slots(self, slots: Mapping[str, str]) -> str:
        """The text with the values of its slots."""
        return self.text.format_map(slots) if self.slots else self.filled


def _row(row: Mapping[str, Any]) -> _Text:
    slots = tuple(slot for _, slot, _, _ in Formatter().parse(row["text"]) if slot)
    return _Text(
        tuple(row.get("decision", ())),
        tuple(row.get("retry_outlook", ())),
        tuple(row.get("side", ())),
        tuple(row.get("open", ())),
        row["text"],
        slots,
        "" if slots else row["text"].format(),
        row.get("worked", True),
    )


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("service.recommend").joinpath("mitigations.toml").read_text(encoding="utf-8"))


@cache
def _texts() -> dict[str, list[_Text]]:
    data = _data()
    texts: dict[str, list[_Text]] = {"contact": [_row(row) for row in data["contact"]]}
    for row in data["text"]:
        texts.setdefault(row["code"], []).append(_row(row))
    return texts


@cache
def _worked() -> Mapping[str, str]:
    """The texts that are added for mitigations that worked before."""
    texts: Mapping[str, str] = _data()["worked"]
    return texts


@cache
def _if_so() -> tuple[frozenset[str], str]:
    """The codes of the mitigations that are conditional while the evidence is open, and their text."""
    found = _data()["if_so"]
    return frozenset(found["codes"]), found["text"]


def worked_here(resolved_by: Mapping[str, int]) -> EvaluatedRule:
    """The mitigations that resolved failures of this cause before, most frequent first; a reason without decision."""
    known = taxonomy.load().mitigations
    ordered = sorted(resolved_by.items(), key=lambda one: (-one[1], one[0]))
    what = ", ".join(f"{known[code].title} ({count:,})" for code, count in ordered if code in known)
    return EvaluatedRule("worked here", _worked()["reason"].format(what=what), decided=False)


def _most_frequent_fix(verdict: Verdict) -> Mapping[str, str]:
    """By mitigation, what most often fixed faults with the symptom of a verdict, where that may fit this failure.

    The figures are of faults in programs of distributed training, so that they say nothing of devices and services,
    and what concerns several processes nothing of a single one.
    """
    if verdict.side != "user" or verdict.symptom is None:
        return {}
    symptom = taxonomy.load().symptoms[verdict.symptom]
    fixes = symptom.extra["fixes"]
    if symptom.title == _OTHERS or not fixes:
        return {}
    most = max(fix["share"] for fix in fixes)
    several = any(line.rank for line in verdict.evidence)
    found = [fix for fix in fixes if fix["share"] == most and (several or not _OF_SEVERAL.search(fix["fix"]))]
    return {fix["mitigation"]: fix["fix"] for fix in reversed(found) if "mitigation" in fix}


def _tells_only_the_end(line: Evidence) -> bool:
    return line.signature in _ENDS or line.text.startswith("status=")


class MitigationWording:
    """The texts for one verdict; `nodes` are the excluded nodes, `slots` further values.

    `decision` is that of the same advice: the texts agree with it.
    """

    def __init__(
        self,
        verdict: Verdict,
        nodes: Sequence[str],
        slots: Mapping[str, str],
        *,
        cancelled: bool = False,
        decision: Decision | None = None,
    ) -> None:
        axes = taxonomy.load()
        first = next((line for line in verdict.evidence if line.role == "initiating"), None)
        actions = axes.categories[verdict.category].extra.get("actions") if verdict.category is not None else None
        in_doubt = verdict.abstained or verdict.disputed or verdict.uncorroborated
        self._verdict = verdict
        self._decision = decision or ""
        self._open = "cancelled" if cancelled else "undecided" if in_doubt else ""
        # How the scheduler ended a job is known from its headline, and is no place in the job's code to look at.
        known = first is not None and verdict.side == "user" and not self._open and _tells_only_the_end(first)
        line = "" if first is None or known else whole_words(first.text.strip(), LINE_SHOWN)
        self._fix = _most_frequent_fix(verdict)
        self._slots = {
            "nodes": ", ".join(nodes),
            "line": (verdict.own_frame if verdict.side == "user" else None) or line,
            "action": actions[0] if actions else "",
            "fix": "",
            "no_log": verdict.missing[0] if verdict.missing and not any(one.line for one in verdict.evidence) else "",
            **slots,
        }

    def mitigation(self, code: str, worked: int = 0) -> str:
        """The text of a mitigation, with the number of failures that it resolved on this cluster.

        Raises:
            KeyError: the code has no text.
        """
        fix = self._fix.get(code)
        slots = {**self._slots, "fix": f"most often: {fix}"} if fix else self._slots
        fitting = self._fitting(code, slots)
        if fitting is None:
            raise KeyError(code)
        found = fitting.with_slots(slots)
        conditional, if_so = _if_so()
        if self._open and code in conditional:
            found = if_so.format(text=found[0].lower() + found[1:])
        if not worked or not fitting.worked:
            return found
        return _worked()["once" if worked == 1 else "often"].format(text=found, count=f"{worked:,}")

    def contact(self) -> str | None:
        """Who should be contacted."""
        fitting = self._fitting("contact", self._slots)
        return None if fitting is None else fitting.with_slots(self._slots)

    def _fitting(self, code: str, slots: Mapping[str, str]) -> _Text | None:
        fits = (one for one in _texts().get(code, ()) if one.fits(self._verdict, self._decision, slots, self._open))
        return next(fits, None)


@cache
def _reason_texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def describe(name: str, result: RuleResult) -> str:
    """The text of a rule's result.

    Raises:
        KeyError: the rule has no such text, or the text has a slot that the rule does not fill.
    """
    texts = _reason_texts()
    of_all = texts["*"]
    text = of_all.get(result.text) or texts[name][result.text]
    return text.format_map(result.slots) if result.slots else text


def describe_all(trace: Trace) -> tuple[EvaluatedRule, ...]:
    """Every evaluated rule, its text, and whether it set the decision or the mode."""
    return tuple(
        EvaluatedRule(name, describe(name, result), decided) if result.slots else _plain(name, result.text, decided)
        for name, result, decided in trace
    )


@cache
def _plain(name: str, text: str, decided: bool) -> EvaluatedRule:  # noqa: FBT001 - a key
    return EvaluatedRule(name, describe(name, RuleResult(text)), decided)
