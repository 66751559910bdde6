"""A built report with formatted figures, so that page, PDF, Markdown and JSON cannot differ."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from service.errors import damage_translated

SCHEMA = "weekly-report/1"
_FORMER_NAME = "reckoned"  # of `calculation`: in stored reports, and deprecated for readers of the API


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text and the path of the page it links to."""

    text: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `numeric`: whether each column holds figures, which are right-aligned."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A section: paragraphs and an optional table; `empty` is shown if the table has no row."""

    key: str
    title: str
    paragraphs: tuple[str, ...] = ()
    table: Table | None = None
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One week of the chart: GPU-hours lost by side, and the total with its 95 % interval."""

    week: str
    by_side: Mapping[str, float]
    total: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GoodputPoint:
    """One week of the chart of goodput: GPU-hours held, and the share of them delivered (0 to 1; None if none held)."""

    week: str
    gpu_hours_held: float
    goodput: float | None


@dataclass(frozen=True, slots=True)
class RecommendedAction:
    """One thing to do next week, the GPU-hours it would save in a week like this one, and their calculation in words.

    `target` names what it is about (see `top_actions.covers`); `failures` and `lost_gpu_hours` are those behind it.
    """

    title: str
    gpu_hours: float
    gain: str
    calculation: str
    href: str | None = None
    target: str = ""
    failures: int = 0
    lost_gpu_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class FollowUp:
    """An action that the report of the week before recommended, and its outcome."""

    title: str
    outcome: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One week's report. `figures` holds the raw numbers behind the text, for programs.

    `version` counts publications of the same week; `moved` lists changes from the previous version. `previous`: the
    outcome of the actions of the week before. `scope`: `cluster` and `team` where the report is limited to one.
    `goodput_chart`: the last weeks from the first with GPU-hours; empty in reports of earlier releases.
    """

    week: str
    title: str
    subtitle: str
    sentences: tuple[str, ...]
    chart: tuple[Point, ...]
    todo: tuple[RecommendedAction, ...]
    trust: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    figures: Mapping[str, float | int | None]
    version: int = 1
    moved: tuple[str, ...] = field(default=())
    previous: tuple[FollowUp, ...] = ()
    scope: Mapping[str, str] = field(default_factory=dict)
    goodput_chart: tuple[GoodputPoint, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """The report as JSON (weekly-report/1), also with the former name of `calculation` (see `_FORMER_NAME`)."""
        todo = [{**asdict(one), _FORMER_NAME: one.calculation} for one in self.todo]
        return {"schema": SCHEMA, **asdict(self), "todo": todo}


@damage_translated()
def from_wire(stored: Mapping[str, Any]) -> Report:
    """A report from its JSON, as it was published.

    Raises:
        DamagedData: it has another form.
    """
    return Report(
        week=stored["week"],
        title=stored["title"],
        subtitle=stored["subtitle"],
        sentences=tuple(stored["sentences"]),
        chart=tuple(Point(**point) for point in stored["chart"]),
        todo=tuple(_todo(one) for one in stored["todo"]),
        trust=tuple((label, text) for label, text in stored["trust"]),
        sections=tuple(_section(one) for one in stored["sections"]),
        figures=dict(stored["figures"]),
        version=stored["version"],
        moved=tuple(stored["moved"]),
        previous=tuple(FollowUp(**_linked(one)) for one in stored.get("previous", ())),
        scope=dict(stored.get("scope", {})),
        goodput_chart=tuple(GoodputPoint(**point) for point in stored.get("goodput_chart", ())),
    )


def _todo(stored: Mapping[str, Any]) -> RecommendedAction:
    """An action as stored; those of older versions have only the former name of `calculation`."""
    named = {name: value for name, value in _linked(stored).items() if name != _FORMER_NAME}
    return RecommendedAction(**{"calculation": stored.get(_FORMER_NAME), **named})


def _linked(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored part of a report; its link only if it leads to a page of this service, as all links of reports do."""
    href = stored.get("href")
    own = href is None or (href.startswith("/") and not href.startswith(("//", "/\\")))
    return dict(stored) if own else {**stored, "href": None}


def _section(stored: Mapping[str, Any]) -> Section:
    table = stored["table"]
    return Section(
        stored["key"],
        stored["title"],
        tuple(stored["paragraphs"]),
        None
        if table is None
        else Table(
            tuple(table["columns"]),
            tuple(table["numeric"]),
            tuple(tuple(Cell(**_linked(cell)) for cell in row) for row in table["rows"]),
        ),
        stored["empty"],
    )
