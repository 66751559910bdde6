"""Renders the report as PDF with typst; its data is passed as JSON, so that log text is never read as markup."""

import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from service.errors import ConfigurationError
from service.formatting import gpu_hours, percent
from service.reports import chart
from service.reports.document import Report


def render(report: Report) -> bytes:
    """The whole report as PDF.

    Raises:
        ConfigurationError: the extra `pdf` is not installed.
    """
    try:
        import typst  # noqa: PLC0415 -- 34 MB that only this needs: an extra
    except ImportError:
        raise ConfigurationError("PDF needs the extra: pip install 'faultline[pdf]'") from None
    template_context = report.to_wire()
    for point in template_context["chart"]:
        point["shown"] = gpu_hours(point["total"])
    template = files("service.reports").joinpath("templates/report.typ").read_bytes()
    with tempfile.TemporaryDirectory(prefix="faultline-report-") as folder:  # a root that contains no other files
        source = Path(folder) / "report.typ"
        source.write_bytes(template)
        made = typst.compile(
            str(source),
            root=folder,
            ignore_system_fonts=True,
            sys_inputs={
                "report": orjson.dumps(template_context).decode(),
                "front": orjson.dumps(_front(report)).decode(),
            },
        )
    return bytes(made)


def _front(report: Report) -> dict[str, Any]:
    """The figures of the first page, the height of its chart in GPU-hours, and the chart of goodput."""
    top = chart.height(report.chart)
    figures, goodput = report.figures, report.figures.get("goodput")
    lost, rescued = figures.get("gpu_hours_lost"), figures.get("gpu_hours_rescued")
    named = [
        ("jobs that failed", percent(figures.get("job_failure_rate"))),
        ("GPU-hours lost", "–" if lost is None else gpu_hours(lost)),
        ("goodput", percent(goodput)),
        ("GPU-hours rescued", "–" if rescued is None else gpu_hours(rescued)),
    ]
    ticks = [gpu_hours(share * top) for share in (1.0, 0.5, 0.0)]
    return {"figures": named, "top": top, "ticks": ticks, "goodput": _goodput(report)}


def _goodput(report: Report) -> dict[str, Any] | None:
    """The chart of goodput: its points as shares of its width and height; None if no week has GPU-hours."""
    line = chart.share_line(report.goodput_chart)
    if line is None:
        return None
    return {
        "runs": [[(x / chart.SHARE_WIDTH, y / chart.SHARE_HEIGHT) for x, y in run] for run in line.runs],
        "ticks": [percent(1.0, 0), percent(line.low, 0)],
        "weeks": [(point.week[5:], percent(point.goodput)) for point in report.goodput_chart],
    }
