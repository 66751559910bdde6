"""Page, PDF, Markdown and JSON have the same figures, and log text is escaped."""

import email
import email.policy
import html as html_words
import re
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from service.formatting import percent
from service.reports import chart, document, html, markdown, pdf, scope, summary
from service.reports.build import build
from service.reports.document import Report
from service.statistics.records import Scope
from tests.service.reports.sample_facts import GOODPUT, HOSTILE, facts, week


@pytest.fixture(scope="module")
def report() -> Report:
    """A report with the outcome of actions of the week before."""
    return build(facts(previous_todo=build(facts()).todo, goodput=GOODPUT, goodput_trend=GOODPUT.trend))


@pytest.fixture(scope="module")
def with_trend() -> Report:
    """A report with goodput in five weeks, of which the first and the third have no GPU-hours."""
    last = GOODPUT.trend[0]
    shares = (None, 0.89, None, 0.905, GOODPUT.goodput)
    trend = tuple(
        replace(last, goodput=share, held=300.0 if share else 0.0, since=last.since - timedelta(weeks=4 - number))
        for number, share in enumerate(shares)
    )
    return build(facts(goodput=GOODPUT, goodput_trend=trend))


def texts(report: Report) -> set[str]:
    """Every text of the report."""
    found = {*report.sentences, report.title, report.subtitle, *(text for pair in report.trust for text in pair)}
    for todo in report.todo:
        found |= {todo.title, todo.gain, todo.calculation}
    found |= {text for one in report.previous for text in (one.title, one.outcome)}
    for section in report.sections:
        found |= {section.title, *section.paragraphs}
        for row in section.table.rows if section.table else ():
            found |= {cell.text for cell in row}
    return {text for text in found if text}


def test_html_and_markdown_have_every_figure_of_the_json(report: Report) -> None:
    page = html_words.unescape(html.render(report))
    written = re.sub(r"\\(.)", r"\1", markdown.render(report))
    encoded = orjson.dumps(report.to_wire()).decode()
    for text in texts(report):
        assert text in page
        assert text.replace("\\", "") in written.replace("\\", "")
        assert orjson.dumps(text).decode()[1:-1] in encoded


def test_a_side_has_its_shape_in_every_table(report: Report) -> None:
    page = html.render(report)
    cells = re.findall(r'<td data-label="side">(.*?)</td>', page)
    assert cells
    assert all(re.fullmatch(r'<span class="side (\w+)">\1</span>', cell) for cell in cells)


def test_log_text_is_escaped(report: Report) -> None:
    assert "<script" not in html.render(report)
    assert HOSTILE in html_words.unescape(html.render(report))
    assert "<script" not in markdown.render(report).replace("\\<script", "")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("see https://evil.example/x", "see https[:]//evil.example/x"),
        ("WWW.evil.example", "www[.]evil.example"),
        ("@channel and ana@evil.example", "(at)channel and ana(at)evil.example"),
        ("&commat;here &colon;//", "&commat;here &colon;//"),  # read as text: the ampersand is escaped
        ("vision\r\n# Title", "vision # Title"),
    ],
)
def test_markdown_has_no_link_and_no_mention_of_a_job(raw: str, shown: str) -> None:
    written = markdown.text(raw)
    assert re.sub(r"\\(.)", r"\1", written) == shown
    assert not re.search(r"(?<!\\)[&\[#]", written)


def test_a_name_with_a_line_end_is_one_line_of_a_mail(report: Report) -> None:
    named = replace(report, title="Report of team vis\nBcc: x@y")
    assert summary.mail(named).splitlines()[0] == b"Subject: Report of team vis Bcc: x@y"
    assert scope.words(Scope(team="vis\nBcc: x@y")) == "team vis Bcc: x@y"


def test_markdown_tables_keep_their_columns(report: Report) -> None:
    for block in markdown.render(report).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_the_pdf_is_valid_and_has_the_title(report: Report) -> None:
    pytest.importorskip("typst")
    made = pdf.render(report)
    assert made.startswith(b"%PDF-")
    assert len(made) > 10_000


def test_the_pdf_is_made_of_the_same_document(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    typst = pytest.importorskip("typst")
    given: dict[str, str] = {}

    def compile(*_: object, sys_inputs: dict[str, str], **__: object) -> bytes:  # noqa: A001 - the name of the library
        given.update(sys_inputs)
        return b"%PDF-"

    monkeypatch.setattr(typst, "compile", compile)
    pdf.render(report)
    wire, printed = orjson.loads(orjson.dumps(report.to_wire())), orjson.loads(given["report"])
    for point in printed["chart"]:
        del point["shown"]
    assert printed == wire


def test_the_goodput_chart_has_the_figures_of_its_table_in_every_form(
    with_trend: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    [section] = [one for one in with_trend.sections if one.key == "goodput_trend"]
    assert section.table is not None
    listed = {row[0].text: row[2].text for row in section.table.rows}
    drawn = {point.week: percent(point.goodput) for point in with_trend.goodput_chart}
    assert listed == {week: share for week, share in drawn.items() if share != "–"}
    assert list(drawn.values()) == ["89.0\u00a0%", "–", "90.5\u00a0%", "91.7\u00a0%"], "from the first with GPU-hours"
    page = html.render(with_trend)
    figure = page.partition("<figcaption>Goodput per week")[2].partition("</figure>")[0]
    assert re.findall(r"<span>(W\d\d) <b>(.*?)</b>", figure) == [(week[5:], share) for week, share in drawn.items()]
    assert figure.count("<polyline") == 2, "the line is interrupted in the week without GPU-hours"
    written = markdown.render(with_trend)
    for week_name, share in listed.items():
        assert f"| {week_name} | 300 | {share} |" in written
    wire = with_trend.to_wire()["goodput_chart"]
    assert [point["goodput"] for point in wire] == [0.89, None, 0.905, GOODPUT.goodput]
    typst = pytest.importorskip("typst")
    given: dict[str, str] = {}
    monkeypatch.setattr(typst, "compile", lambda *_, sys_inputs, **__: given.update(sys_inputs) or b"%PDF-")
    pdf.render(with_trend)
    printed = orjson.loads(given["front"])["goodput"]
    assert printed["weeks"] == [[week[5:], share] for week, share in drawn.items()]
    assert printed["ticks"] == ["100\u00a0%", "85\u00a0%"]
    assert [len(run) for run in printed["runs"]] == [1, 2]


def test_a_published_report_keeps_its_goodput_chart_and_an_older_one_has_none(with_trend: Report) -> None:
    wire = orjson.loads(orjson.dumps(with_trend.to_wire()))
    assert document.from_wire(wire).goodput_chart == with_trend.goodput_chart
    del wire["goodput_chart"]
    old = document.from_wire(wire)
    assert old.goodput_chart == ()
    assert "Goodput per week" not in html.render(old)
    pytest.importorskip("typst")
    assert pdf.render(old).startswith(b"%PDF-")
    assert pdf.render(with_trend).startswith(b"%PDF-")


@pytest.mark.parametrize(("share", "low", "y"), [(0.88, 0.85, 48.0), (1.0, 0.95, 0.0), (0.0, 0.0, 60.0)])
def test_the_axis_of_goodput_begins_at_a_multiple_of_five_percent(share: float, low: float, y: float) -> None:
    line = chart.share_line([document.GoodputPoint("2026-W47", 300.0, share)])
    assert line == chart.ShareLine(low, (((150.0, y),),))


def test_the_mail_has_every_figure_as_text_and_as_html(report: Report) -> None:
    message = email.message_from_bytes(summary.mail(report), policy=email.policy.default)
    assert message["Subject"] == report.title
    text, page = (part.get_content() for part in message.iter_parts())
    assert text.replace("\r\n", "\n") == markdown.render(report)
    assert page.replace("\r\n", "\n").strip() == html.render(report).strip()


def test_the_chat_summary_has_ten_lines_of_the_report(report: Report) -> None:
    lines = summary.summary(report)
    assert len(lines) <= 10
    assert lines[0] == report.title
    assert lines[1] == report.sentences[0]
    for todo in report.todo:
        assert any(todo.title in line and todo.gain in line for line in lines)
    assert any(line.startswith("Earlier: ") for line in lines)
    assert lines[-1].startswith("audited accuracy")


def test_the_outcome_of_last_weeks_actions_compares_the_same_failures() -> None:
    before = build(facts())
    same = build(facts(previous_todo=before.todo)).previous
    assert [one.title for one in same] == [todo.title for todo in before.todo]
    for todo, one in zip(before.todo, same, strict=True):
        assert f"{todo.failures} lost" in one.outcome
    gone = build(facts(previous_todo=before.todo, cells=())).previous
    assert all(one.outcome.startswith("no failure this week") for one in gone)


def test_the_interval_of_a_few_failures_is_open_at_the_top() -> None:
    """With one failure, the 95 % interval ends at billions of GPU-hours."""
    one = replace(week(47, finished=2, user=0, hardware=1, hours=4.0), amounts=(4.0,))
    made = build(facts(one, causes={}, categories={}, symptoms={}))
    assert made.chart[-1].high > 1e6, "programs get the figure as it is"
    [lost] = [one for one in made.sentences if "Failures lost" in one]
    assert "4.0 GPU-hours (95 % interval 0.4 to over 400)" in lost
    for text in (html_words.unescape(html.render(made)), markdown.render(made)):
        assert "0.4 to over 400" in text
        assert not re.search(r"to [\d,]{9}", text)
