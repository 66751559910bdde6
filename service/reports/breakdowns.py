"""Breakdowns of the week's failures by the axes of the papers, compared with the published shares."""

from collections.abc import Mapping
from typing import Any

from classifiers import taxonomy
from classifiers.taxonomy import Entry
from service.failures.records import COUNTED_AS_FAILED
from service.formatting import gpu_hours, number, percent
from service.reports import intervals, scope
from service.reports.document import Cell, Section, Table
from service.reports.records import Amount
from service.reports.weekly_facts import Facts
from service.statistics.records import UNKNOWN

# Zhang et al., ICSE 2020, abstract: shares of 4,960 failures.
INTERACTION, INTERACTION_SHARE = "Execution Environment", 0.480
SPECIFIC, SPECIFIC_SHARE = "Deep Learning Specific", 0.135
# The numbers of cases that the papers' shares are of: Gao et al. 2023, Zhang et al. 2020, Liu et al. 2023.
CASES = {"cause": 360, "category": 4_960, "symptom": 637}
_CHANCE = 0.05
_COLUMNS = ("attempts", "share (95 %)", "GPU-hours", "paper", "note")
_NUMERIC = (True, True, True, True, False)
DIFFERS = {1: "more here than in the paper", -1: "less here than in the paper", 0: ""}


def compare_share(count: int, of: int, published: float | None, cases: int) -> int:
    """1 if the share is significantly larger than the published share of `cases`, -1 if smaller, 0 otherwise."""
    if published is None:
        return 0
    return intervals.differs(intervals.share(count, of), intervals.share_of(published, cases))


def causes(facts: Facts, failed: int, texts: Mapping[str, str]) -> Section:
    """The 22 causes of Gao et al.; shares of all failed attempts."""
    axes = taxonomy.load()
    return _section(facts, "causes", texts, "cause", axes.causes, facts.causes, failed)


def categories(facts: Facts, texts: Mapping[str, str]) -> Section:
    """The 20 categories of Zhang et al.; shares of the failures that have one."""
    axes = taxonomy.load()
    of = sum(amount.failures for amount in facts.categories.values())
    made = _section(facts, "categories", texts, "category", axes.categories, facts.categories, of)
    if not of:
        return Section(made.key, made.title, (), made.table, made.empty)
    notes = {}
    for name, dimension, published in (
        ("interaction", INTERACTION, INTERACTION_SHARE),
        ("specific", SPECIFIC, SPECIFIC_SHARE),
    ):
        count = _of_dimension(facts.categories, dimension)
        notes[name] = percent(count / of)
        note = DIFFERS[compare_share(count, of, published, CASES["category"])]
        notes[f"{name}_note"] = f"; {note}" if note else ""
    return Section(made.key, made.title, (made.paragraphs[0].format(**notes),), made.table, made.empty)


def symptoms(facts: Facts, texts: Mapping[str, str]) -> Section:
    """The 30 symptoms of Liu et al.; shares of the failures that show one."""
    of = sum(amount.failures for amount in facts.symptoms.values())
    return _section(facts, "symptoms", texts, "symptom", taxonomy.load().symptoms, facts.symptoms, of)


def mitigations(facts: Facts, texts: Mapping[str, str]) -> Section:
    """The mitigations that were applied, compared with the ten of Gao et al."""
    done = facts.automation.by_state.get("done", 0)
    taken = {
        "M1": (
            done + facts.resubmitted_by_people,
            f"{number(done)} automatic, {number(facts.resubmitted_by_people)} by people",
        )
    }
    for code, count in facts.recorded_mitigations.items():
        before, note = taken.get(code, (0, ""))
        taken[code] = (before + count, "; ".join(filter(None, (note, f"{number(count)} recorded"))))
    total = sum(count for count, _ in taken.values())
    rows = tuple(
        (
            Cell(f"{entry.code} {entry.title}"),
            Cell(number(taken.get(code, (0, ""))[0])),
            Cell(percent(taken.get(code, (0, ""))[0] / total)),
            Cell("–" if entry.share is None else percent(entry.share / 100)),
            Cell(taken.get(code, (0, ""))[1]),
        )
        for code, entry in taxonomy.load().mitigations.items()
        if total
    )
    return Section(
        "mitigations",
        texts["title"],
        (texts["intro"],),
        Table(("mitigation", "times", "share", "paper", "how"), (False, True, True, True, False), rows),
        texts["empty"],
    )


def dimensions(found: Mapping[str, Amount]) -> dict[str, float | None]:
    """The two main shares of Zhang et al.: interaction with the platform, and specific to deep learning."""
    of = sum(amount.failures for amount in found.values())
    return {
        "interaction_share": _of_dimension(found, INTERACTION) / of if of else None,
        "specific_share": _of_dimension(found, SPECIFIC) / of if of else None,
    }


def _of_dimension(found: Mapping[str, Amount], dimension: str) -> int:
    axis = taxonomy.load().categories
    return sum(
        amount.failures
        for code, amount in found.items()
        if code in axis and axis[code].extra.get("dimension") == dimension
    )


def _link(facts: Facts, name: str, code: str) -> str:
    """The list of the failures that a row counts. A verdict that is not conclusive counts for no cause."""
    if name == "cause":
        which = {"abstained": "true"} if code == UNKNOWN else {"cause": code, "abstained": "false"}
    else:
        which = {name: code}
    return scope.link("/failures", facts.scope, facts.since, facts.until, **which, status=COUNTED_AS_FAILED)


def _section(
    facts: Facts,
    key: str,
    texts: Mapping[str, str],
    name: str,
    axis: Mapping[str, Entry],
    found: Mapping[str, Amount],
    of: int,
) -> Section:
    """All codes, those with most attempts first, those without failures last; equal ones in the paper's order."""
    rows: list[tuple[Cell, ...]] = []
    codes: list[Any] = [*axis, *(code for code in sorted(found) if code not in axis)]
    codes.sort(key=lambda code: -found.get(code, Amount()).failures)
    for code in codes if of else ():
        amount = found.get(code, Amount())
        part = intervals.share(amount.failures, of)
        share = axis[code].share if code in axis else None
        published = None if share is None else share / 100
        rows.append(
            (
                Cell(
                    f"{code} {taxonomy.load().title_of(code)}" if code in axis else code,
                    _link(facts, name, code) if amount.failures else None,
                ),
                Cell(number(amount.failures)),
                Cell("–" if part is None else f"{percent(part.value)} ({percent(part.low)} to {percent(part.high)})"),
                Cell(gpu_hours(amount.gpu_hours)),
                Cell(percent(published)),
                Cell(DIFFERS[compare_share(amount.failures, of, published, CASES[name])]),
            )
        )
    table = Table((name, *_COLUMNS), (False, *_NUMERIC), tuple(rows))
    made = sum(entry.share is not None for entry in axis.values()) + (2 if name == "category" else 0)
    compared = texts["compared"].format(made=made, chance=number(made * _CHANCE, 1))
    return Section(key, texts["title"], (texts["intro"].replace("{compared}", compared),), table, texts["empty"])
