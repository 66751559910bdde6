"""Renders the report as one self-contained HTML file."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from service.formatting import gpu_hours, percent
from service.reports import chart
from service.reports.document import Report
from service.statistics.records import SIDES


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("service.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["gpu_hours"] = gpu_hours
    made.filters["percent"] = percent
    return made


def render(report: Report) -> str:
    """The whole report; log text is escaped. Links are paths of the service's pages."""
    return _environment().get_template("report_file.html").render(**template_context(report))


def template_context(report: Report) -> dict[str, object]:
    """The variables of the template report_body.html, here and on the service's page."""
    return {
        "report": report,
        "bars": chart.bars(report.chart),
        "chart": (chart.WIDTH, chart.HEIGHT),
        "chart_height": chart.height(report.chart),
        "goodput_line": chart.share_line(report.goodput_chart),
        "goodput_size": (chart.SHARE_WIDTH, chart.SHARE_HEIGHT),
        "sides": SIDES,
        "chart_sides": [side for side in SIDES if any(side in point.by_side for point in report.chart)],
    }
