"""The texts that people read lie in one catalogue and are plain standard English."""

import re
from pathlib import Path

import pytest

from tests.architecture.visible_texts import CATALOGUE, python_texts, template_texts, visible_texts

TEMPLATES = Path(__file__).parents[2] / "service/web/templates"
NOT_STANDARD = re.compile(
    r"said and done|would have been asked for|nothing would have been|what became of|reckon\w*|\banew\b|by itself"
    r"|\bthat fit\b|\bbeside\b|\bkin\b|\bdeeds?\b|\btold\b|speaks? for|of those ticked",
    re.IGNORECASE,
)


def test_the_catalogue_holds_all_visible_texts() -> None:
    stored = set(CATALOGUE.read_text(encoding="utf-8").splitlines())
    current = set(visible_texts())
    changes = [f"new:  {line}" for line in sorted(current - stored)]
    changes += [f"gone: {line}" for line in sorted(stored - current)]
    assert not changes, "\n".join([*changes, "Write the catalogue with: python -m tests.architecture.visible_texts"])


def test_table_heads_buttons_and_summaries_begin_with_a_capital_letter() -> None:
    lower_case = re.compile(r"<(?:th|button|summary)\b(?:[^<>\"]|\"[^\"]*\")*>(?:<span class=\"hidden\">)?[a-z][^<{]*")
    templates = sorted(TEMPLATES.rglob("*.html"))
    assert len(templates) > 10
    found = [f"{one.name}: {text}" for one in templates for text in lower_case.findall(one.read_text(encoding="utf-8"))]
    assert found == []


def test_no_visible_text_has_nonstandard_phrases_or_double_spaces() -> None:
    wrong = [line for line in visible_texts() if NOT_STANDARD.search(line) or "  " in line.split("\t", 1)[1]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("template", "texts"),
    [
        ("<p>{{ page.total | number }} of <b>5</b> jobs</p>", {"{total} of 5 jobs"}),
        ("<p>{{ n }} job{% if n != 1 %}s{% endif %} failed</p>", {"{n} job¦s¦ failed"}),
        ('<a class="Wide red" title="Open the log" href="/x">Log</a>', {"Open the log", "Log"}),
        ('<p>{{ "No result" if empty else word("state", s) }}</p>', {"No result"}),
        ("<script>const words = 'not shown';</script>{# A comment #}", set()),
    ],
)
def test_texts_of_templates(template: str, texts: set[str]) -> None:
    assert texts <= template_texts(template)
    assert not any("Wide" in text or "not shown" in text or "comment" in text for text in template_texts(template))


def test_texts_of_modules() -> None:
    source = '"""A module."""\nlog.info("A line of the log")\nnotice = f"Held {count} of the jobs"\nkey = "state"\n'
    assert python_texts(source) == {"Held {count} of the jobs"}
