"""A list that does not follow the format is refused; its words are found."""

from pathlib import Path

import pytest

from classifiers.data import word_lists

GOOD = 'version = 1\n[[mark]]\nname = "hangs"\nwords = ["stands still", "hangs"]\nsource = "people"\nstage = true\n'


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(word_lists, "files", lambda _: tmp_path)
    (tmp_path / "cues").mkdir()
    return tmp_path / "cues" / "list.toml"


def test_entries_come_in_order_with_their_flags(file: Path) -> None:
    file.write_text(GOOD + '[[mark]]\nname = "slow"\nwords = ["crawls"]\nsource = "people"\n')
    read = word_lists.entries("list.toml", "mark", flags=("stage",))
    assert [(one["name"], one.get("stage", False)) for one in read] == [("hangs", True), ("slow", False)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "list.toml: expected version = 1"),
        ('name = "hangs"', 'name = ""', r"list.toml: \?: expected name, words and source, and nothing else but stage"),
        ('source = "people"', 'origin = "people"', "list.toml: hangs: expected name, words and source"),
        ('["stands still", "hangs"]', "[]", "list.toml: hangs: expected name, words and source"),
        ('"stands still"', '"Stands still"', "list.toml: hangs: expected a lower-case word: 'Stands still'"),
    ],
)
def test_a_wrong_entry_is_refused_and_named(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=message):
        word_lists.entries("list.toml", "mark", flags=("stage",))


def test_an_unknown_flag_is_refused(file: Path) -> None:
    file.write_text(GOOD)
    with pytest.raises(ValueError, match=r"list.toml: hangs: expected name, words and source"):
        word_lists.entries("list.toml", "mark")


def test_words_are_found_by_their_index() -> None:
    found = word_lists.automaton(["hangs", "crawls"]).find_matches_as_indexes("it crawls, then hangs")
    assert [place for place, _, _ in found] == [1, 0]
