"""The report as one HTML file that needs nothing else."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from service.formatting import gpu_hours
from service.reports import chart
from service.reports.document import Report


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
    return made


def render(report: Report) -> str:
    """The whole report; whatever came from a log is escaped. Links lead to the service's pages by path."""
    return _environment().get_template("report_file.html").render(**template_context(report))


def template_context(report: Report) -> dict[str, object]:
    """What the template report_body.html needs, here and on the service's own page."""
    return {
        "report": report,
        "bars": chart.bars(report.chart),
        "chart": (chart.WIDTH, chart.HEIGHT),
        "chart_sides": [side for side in chart.SIDES if any(side in point.by_side for point in report.chart)],
    }
