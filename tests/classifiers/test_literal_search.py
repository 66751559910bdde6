import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.literal_search import Literals

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


def test_a_word_that_is_not_ascii_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match="fäil"):
        Literals(["error", "fäil"])
