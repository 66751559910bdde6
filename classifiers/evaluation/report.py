"""One self-contained page of an evaluation: figures beside baselines, by class, confusion, calibration, mistakes."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from classifiers.data.labelled_cases import WEAK_CLASS
from classifiers.evaluation.figures import ALL, TITLES, PartFigures
from classifiers.evaluation.metrics import AxisFigures, Evaluation
from classifiers.evaluation.text_tables import constant_note, is_of_labels, shown

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;"
    "background:#fff}table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.25rem .6rem;border-bottom:1px solid #d8dee4;text-align:right}"
    "td:first-child,th:first-child{text-align:left}th{border-bottom:2px solid #8c959f}"
    "caption{text-align:left;font-weight:600;padding:.3rem 0}.weak{color:#9a6700}"
    "svg{max-width:26rem;height:auto}code{font-size:.85em;"
    "overflow-wrap:anywhere}@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}td,th{border-color:#30363d}"
    ".weak{color:#d29922}}"
)


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"  # noqa: PLR0124 - not a number


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _summary(predictors: Sequence[PartFigures]) -> str:
    """The figures of one part: the model's with intervals, and those that baselines have."""
    own, *others = predictors
    head = _row(["", *(escape(predictor.predictor) for predictor in predictors)], "th")
    rows = []
    for name, figure in own.figures.items():
        cells = [shown(other.figures.get(name)).partition(" ")[0] if is_of_labels(name) else "" for other in others]
        rows.append(_row([f"{escape(TITLES[name])}, of {figure.cases}", shown(figure), *cells]))
    caption = f"{escape(own.part)}: {own.cases} cases of {own.sources} sources"
    return f"<table><caption>{caption}</caption>{head}{''.join(rows)}</table>"


def _recall_by_cause(own: PartFigures) -> str:
    head = _row(["true cause", "cases", "sources", "recall", "precision"], "th")
    rows = [
        _row(
            [
                _class_name(cause.code, few=cause.cases < WEAK_CLASS),
                str(cause.cases),
                str(cause.sources),
                shown(cause.recall),
                _share(cause.precision),
            ]
        )
        for cause in own.causes
    ]
    return f"<table><caption>Recall by cause</caption>{head}{''.join(rows)}</table>"


def _class_name(code: str, *, few: bool) -> str:
    return f'<span class="weak">{escape(code)} (few cases)</span>' if few else escape(code)


def _parts(parts: Mapping[str, Sequence[PartFigures]]) -> list[str]:
    """All cases with recall by cause, then each part."""
    out = []
    for part, predictors in parts.items():
        out.append(_summary(predictors))
        note = constant_note(predictors)
        if part == ALL:
            out += [*([f"<p>{escape(note)}</p>"] if note else []), _recall_by_cause(predictors[0])]
    return [*out, "<p>Brackets: 95 % intervals, bootstrap over sources (the groups of the cases).</p>"]


def _classes(figures: AxisFigures) -> str:
    head = _row(["class", "cases", "precision", "recall", "F1"], "th")
    rows = [
        _row(
            [
                _class_name(row.code, few=row.cases < WEAK_CLASS),
                str(row.cases),
                _share(row.precision),
                _share(row.recall),
                _share(row.f1),
            ]
        )
        for row in figures.classes
    ]
    return f"<table><caption>{escape(figures.axis)} by class</caption>{head}{''.join(rows)}</table>"


def _confusion(figures: AxisFigures) -> str:
    wrong = sorted(((count, pair) for pair, count in figures.confusion.items() if pair[0] != pair[1]), reverse=True)[
        :15
    ]
    if not wrong:
        return ""
    head = _row(["truth", "taken for", "cases"], "th")
    rows = [_row([escape(truth), escape(got), str(count)]) for count, (truth, got) in wrong]
    return f"<table><caption>{escape(figures.axis)}: most frequent mix-ups</caption>{head}{''.join(rows)}</table>"


def _matrix(figures: AxisFigures) -> str:
    codes = sorted({code for pair in figures.confusion for code in pair})
    head = _row(["truth ↓ got →", *map(escape, codes)], "th")
    rows = [_row([escape(truth), *(str(figures.confusion.get((truth, got), "")) for got in codes)]) for truth in codes]
    return f"<table><caption>{escape(figures.axis)}: confusion matrix</caption>{head}{''.join(rows)}</table>"


def _plot(points: Sequence[tuple[float, float]], title: str, x: str, *, diagonal: bool) -> str:
    """Shares right over shares of another kind as a line in SVG."""
    path = " ".join(f"{40 + 250 * a:.1f},{270 - 250 * b:.1f}" for a, b in points)
    dots = "".join(
        f'<circle cx="{40 + 250 * a:.1f}" cy="{270 - 250 * b:.1f}" r="3"/>'
        for a, b in points[:: max(1, len(points) // 25)]
    )
    guide = (
        '<line x1="40" y1="270" x2="290" y2="20" stroke="currentColor" stroke-dasharray="4" opacity=".5"/>'
        if diagonal
        else ""
    )
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 310 300" role="img" '
        f'aria-label="{escape(title)}" fill="currentColor" font-size="11">'
        '<rect x="40" y="20" width="250" height="250" fill="none" stroke="currentColor"/>'
        f'{guide}<polyline points="{path}" fill="none" stroke="#0969da" stroke-width="2"/>{dots}'
        f'<text x="120" y="292">{escape(x)}</text><text x="8" y="16">right</text>'
        '<text x="30" y="284">0</text><text x="284" y="284">1</text><text x="26" y="26">1</text></svg></figure>'
    )


def page(
    evaluations: Sequence[Evaluation], *, source: str, model: str, parts: Mapping[str, Sequence[PartFigures]]
) -> str:
    """The report. The first evaluation is the model's, the others are baselines; `parts` as of `measure_parts`."""
    first = evaluations[0]
    out = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>Faultline: evaluation</title><style>{_STYLE}</style><h1>Evaluation</h1>",
        f"<p>{first.cases} cases of {escape(source)}; model {escape(model)}.</p>",
        *_parts(parts),
    ]
    out += [
        _plot(
            [(confidence, right) for confidence, right, _ in first.reliability],
            "Reliability of the side",
            "confidence",
            diagonal=True,
        ),
        _plot(first.coverage, "Coverage: right among the most confident", "share answered", diagonal=False),
    ]
    for axis in ("side", "cause", "category", "symptom", "retry"):
        figures = first.axes[axis]
        if figures.cases:
            out += [_classes(figures), _matrix(figures) if axis in {"side", "retry"} else _confusion(figures)]
    weak = [f"{axis} {code} ({count})" for axis, codes in first.weak.items() for code, count in codes.items()]
    if weak:
        out.append(
            f"<h2>Weak classes</h2><p>Fewer than ten cases, so their figures say little: {escape(', '.join(weak))}.</p>"
        )
    if first.mistakes:
        head = _row(["case", "kind", "truth", "got", "confidence", "leading line"], "th")
        rows = [
            _row(
                [
                    escape(mistake.id),
                    escape(mistake.kind),
                    mistake.truth,
                    mistake.got,
                    f"{mistake.confidence:.2f}",
                    f"<code>{escape(mistake.line[:200])}</code>",
                ]
            )
            for mistake in first.mistakes
        ]
        out.append(f"<h2>Worst mistakes</h2><table>{head}{''.join(rows)}</table>")
    return "\n".join(out) + "</html>\n"
