"""Visible control characters, and numbers formatted for people."""

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
def test_every_character_is_visible(text: str) -> None:
    shown = formatting.escape_invisible(text)
    assert not any(0x202A <= ord(char) <= 0x202E or 0x2066 <= ord(char) <= 0x2069 for char in shown)
    assert not any(ord(char) in {0x200B, 0x3164} or 0x2060 <= ord(char) <= 0x206F for char in shown)
    assert not any(0xE0000 <= ord(char) <= 0xE0FFF for char in shown)
    assert not any(ord(char) < 0x20 and char not in "\t\n" for char in shown)
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a␀b"),
        ("\x1b[31m", "␛[31m"),
        ("\u202egpj.exe", "[U+202E]gpj.exe"),
        ("\ud800", "\ufffd"),
        ("an\u200da", "an[U+200D]a"),
        ("ana\u3164", "ana[U+3164]"),
        ("ana\U000e0041\ufe00", "ana[U+E0041][U+FE00]"),
        ("\U0001f468\u200d\U0001f4bb \u26a0\ufe0f done", "\U0001f468\u200d\U0001f4bb \u26a0\ufe0f done"),
        ("שלום", "שלום"),
        ("tab\tnew\nline", "tab\tnew\nline"),
    ],
)
def test_control_characters_are_named(text: str, shown: str) -> None:
    assert formatting.escape_invisible(text) == shown


def test_other_values_are_unchanged() -> None:
    assert formatting.escape_invisible(7) == 7
    assert formatting.escape_invisible(Markup("<b>\x01</b>")) == Markup("<b>\x01</b>")


def test_terminal_colours_are_removed() -> None:
    assert formatting.strip_colour("\x1b[1;31mred\x1b[0m") == "red"


def test_a_text_on_one_line_has_no_character_that_does_not_print() -> None:
    assert formatting.one_line(" the node\n\tlost\x1b[31m its\u2028link \xa0 ") == "the node lost [31m its link"


def test_long_texts_are_truncated_with_a_count() -> None:
    assert formatting.truncate("abc", 3) == "abc"
    assert formatting.truncate("x" * 5_000, 10) == "x" * 10 + " … 4,990 more characters"


@pytest.mark.parametrize(
    ("back", "shown"),
    [(5, "just now"), (90, "1 min ago"), (7200, "2 h ago"), (3 * 86_400, "3 d ago"), (-60, "in the future")],
)
def test_the_time_since_is_shown_in_one_unit(back: int, shown: str) -> None:
    assert formatting.time_ago(NOW - timedelta(seconds=back), NOW).replace("\u00a0", " ") == shown


def test_a_time_is_shown_in_its_zone_or_else_in_utc() -> None:
    assert formatting.exact_time(NOW, ZoneInfo("Europe/Berlin")) == "2026-11-20 13:00:00 CET"
    assert formatting.exact_time(datetime.max.replace(tzinfo=UTC), ZoneInfo("Asia/Tokyo")).endswith("UTC")


def test_a_query_omits_empty_filters() -> None:
    assert query({"side": "user", "q": "a b&c"}, {"sort": None}, cursor="") == "?side=user&q=a+b%26c"
    assert query({}) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_durations_have_two_units_at_most(seconds: float, shown: str) -> None:
    assert formatting.duration(seconds).replace("\u00a0", " ") == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.04, "<0.1"), (0.5, "0.5"), (24, "24"), (1363.4, "1,363")])
def test_gpu_hours_have_significant_digits_only(value: float, shown: str) -> None:
    assert formatting.gpu_hours(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (30_089.2, "30,100"),
        (356.6, "357"),
        (99.96, "100"),
        (67.29, "67.3"),
        (2.794, "2.79"),
        (0.017, "0.0170"),
    ],
)
def test_estimates_have_three_significant_digits(value: float, shown: str) -> None:
    assert formatting.significant(value) == shown


def test_small_and_unknown_shares_are_not_shown_as_zero() -> None:
    assert formatting.percent(0.0001) == "<0.1\u00a0%"
    assert formatting.percent(0.00004, 2) == "<0.01\u00a0%"
    assert formatting.percent(0) == "0.0\u00a0%"
    assert formatting.percent(0.0403) == "4.0\u00a0%"
    assert formatting.percent(None) == "–"


def test_confidence_is_never_shown_as_100_percent() -> None:
    assert formatting.confidence(0.9999) == "over 99\u00a0%"
    assert formatting.confidence(0.97) == "97\u00a0%"
