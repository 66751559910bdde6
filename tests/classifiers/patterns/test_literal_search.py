import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.patterns import literal_search
from classifiers.patterns.literal_search import Literals, lower_case

WORDS = ("err", "error", "rro", "?x")


@given(st.text(alphabet=st.sampled_from("errorx?é€😀 \n\ud800"), max_size=60))
def test_every_match_is_found_with_positions_in_characters(text: str) -> None:
    expected = {
        (index, at, at + len(word))
        for index, word in enumerate(WORDS)
        for at in range(len(text))
        if text.startswith(word, at)
    }
    assert set(Literals(WORDS).find(text)) == expected


def test_a_literal_search_finds_the_same_after_many_texts() -> None:
    search = Literals(WORDS)
    text = "an error, é?x\n" * 1_000
    found = search.find(text)
    assert len(found) == 4_000
    assert all(search.find(text) == found for _ in range(10))


@pytest.mark.parametrize("piece", range(1, 12))
def test_a_long_text_is_searched_piece_by_piece_with_the_same_matches(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """All matches of 16 MB of nothing but such words took 1 GB."""
    monkeypatch.setattr(literal_search, "PIECE", piece)
    search = Literals(WORDS)
    for text in ("xerrorerr?xé?xerrorrro", "", "err", "error" * 5):
        assert list(search.each(text)) == search.find(text)


def test_a_word_that_is_not_ascii_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match="fäil"):
        Literals(["error", "fäil"])


def test_lower_case_keeps_every_position() -> None:
    text = "İSTANBUL Ω FAILED"
    assert lower_case(text) == "İstanbul ω failed"
    assert lower_case(text).index("failed") == text.index("FAILED")
