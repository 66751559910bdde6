"""Renders the report as Markdown, for chats and wikis."""

import re
from collections.abc import Iterable

from service.formatting import MENTION, WWW, gpu_hours
from service.reports import chart
from service.reports.document import Report, Section, Table

_ACTS = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
# What chats, wikis and mail programs turn into links and mentions in any text.
_SCHEME = re.compile(r":(?=//)")
_BREAKS = re.compile(r"[\r\n\x00-\x1f\x7f]+")


def render(report: Report) -> str:
    """The whole report; log text is escaped."""
    lines = [f"# {text(report.title)}", "", text(report.subtitle), ""]
    if report.version > 1:
        lines += [f"Version {report.version}. Changes:", "", *(f"- {text(one)}" for one in report.moved), ""]
    lines += [*(f"{text(sentence)}" for sentence in report.sentences), ""]
    lines += ["## Three things to do", ""]
    lines += [
        f"{number}. **{text(todo.title)}** – {text(todo.gain)} ({text(todo.calculation)})"
        for number, todo in enumerate(report.todo, 1)
    ] or ["No action is recommended."]
    if report.previous:
        lines += ["", "## Outcome of last week's actions", ""]
        lines += [f"- **{text(one.title)}**: {text(one.outcome)}" for one in report.previous]
    lines += ["", "## How far to trust this", ""]
    lines += [f"- {text(label)}: {text(value)}" for label, value in report.trust]
    lines += ["", "## GPU-hours lost by week", ""]
    sides = sorted({side for point in report.chart for side in point.by_side})
    lines += _rows(("week", *sides, "all", "95 %"), (False, *(True for _ in sides), True, True))
    lines += [
        _row(
            (
                point.week,
                *(gpu_hours(point.by_side.get(side, 0.0)) for side in sides),
                gpu_hours(point.total),
                f"{gpu_hours(point.low)} to {chart.upper_end(point.total, point.high)}",
            )
        )
        for point in report.chart
    ]
    for section in report.sections:
        lines += ["", *_section(section)]
    return "\n".join(lines) + "\n"


def text(raw: str) -> str:
    """The text on one line with Markdown characters escaped, and without links and mentions."""
    unlinked = WWW.sub("www[.]", _SCHEME.sub("[:]", MENTION.sub("(at)", _BREAKS.sub(" ", raw))))
    return _ACTS.sub(r"\\\1", unlinked)


def _section(section: Section) -> Iterable[str]:
    yield f"## {text(section.title)}"
    yield ""
    for paragraph in section.paragraphs:
        yield text(paragraph)
        yield ""
    if section.table is None or not section.table.rows:
        yield text(section.empty)
    else:
        yield from _table(section.table)


def _table(table: Table) -> Iterable[str]:
    yield from _rows(table.columns, table.numeric)
    for row in table.rows:
        yield _row(tuple(cell.text for cell in row))


def _rows(columns: tuple[str, ...], numeric: tuple[bool, ...]) -> list[str]:
    return [_row(columns), "|" + "|".join("---:" if right else "---" for right in numeric) + "|"]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(text(cell) for cell in cells) + " |"
