"""Nothing hidden, nothing that acts, numbers as people read them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from service import formatting
from service.web.pages.templating import query
from tests.service.web.world import NOW


@given(st.text())
def test_every_character_can_be_seen(text: str) -> None:
    shown = formatting.visible(text)
    assert not any(0x202A <= ord(char) <= 0x202E or 0x2066 <= ord(char) <= 0x2069 for char in shown)
    assert not any(ord(char) < 0x20 and char not in "\t\n" for char in shown)
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a␀b"),
        ("\x1b[31m", "␛[31m"),
        ("\u202egpj.exe", "[U+202E]gpj.exe"),
        ("\ud800", "\ufffd"),
        ("שלום", "שלום"),
        ("tab\tnew\nline", "tab\tnew\nline"),
    ],
)
def test_what_acts_is_named(text: str, shown: str) -> None:
    assert formatting.visible(text) == shown


def test_other_things_pass() -> None:
    assert formatting.visible(7) == 7
    assert formatting.visible(Markup("<b>\x01</b>")) == Markup("<b>\x01</b>")


def test_a_terminals_colours_go() -> None:
    assert formatting.without_colour("\x1b[1;31mred\x1b[0m") == "red"


def test_long_texts_are_cut_and_say_so() -> None:
    assert formatting.cut("abc", 3) == "abc"
    assert formatting.cut("x" * 5_000, 10) == "x" * 10 + " … 4,990 more characters"


@pytest.mark.parametrize(
    ("back", "shown"),
    [(5, "just now"), (90, "1 min ago"), (7200, "2 h ago"), (3 * 86_400, "3 d ago"), (-60, "in the future")],
)
def test_how_long_ago(back: int, shown: str) -> None:
    assert formatting.ago(NOW - timedelta(seconds=back), NOW).replace("\u00a0", " ") == shown


def test_times() -> None:
    assert formatting.exact(NOW, ZoneInfo("Europe/Berlin")) == "2026-11-20 13:00:00 CET"
    assert formatting.exact(datetime.max.replace(tzinfo=UTC), ZoneInfo("Asia/Tokyo")).endswith("UTC")


def test_a_query_leaves_out_what_asks_nothing() -> None:
    assert query({"side": "user", "q": "a b&c"}, {"sort": None}, cursor="") == "?side=user&q=a+b%26c"
    assert query({}) == ""
