"""Page, PDF, Markdown and JSON have the same figures, and log text is escaped."""

import html as html_words
import re

import orjson
import pytest

from service.reports import html, markdown, pdf
from service.reports.build import build
from service.reports.document import Report
from tests.service.reports.sample_facts import HOSTILE, facts


@pytest.fixture(scope="module")
def report() -> Report:
    return build(facts())


def texts(report: Report) -> set[str]:
    """Every text of the report."""
    found = {*report.sentences, report.title, report.subtitle, *(text for pair in report.trust for text in pair)}
    for todo in report.todo:
        found |= {todo.title, todo.gain, todo.reckoned}
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


def test_log_text_is_escaped(report: Report) -> None:
    assert "<script" not in html.render(report)
    assert HOSTILE in html_words.unescape(html.render(report))
    assert "<script" not in markdown.render(report).replace("\\<script", "")


def test_markdown_tables_keep_their_columns(report: Report) -> None:
    for block in markdown.render(report).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_the_pdf_is_valid_and_has_the_title(report: Report) -> None:
    pytest.importorskip("typst")
    made = pdf.render(report)
    assert made.startswith(b"%PDF-")
    assert len(made) > 10_000
