"""Where daily talk ends is found whatever its words, so that overcome trouble begins nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction.line_prefixes import sample
from classifiers.extraction.progress_lines import Chatter

STEPS = {
    "plain": "step {0} loss {1:.3f}\n",
    "megatron": " iteration {0:8d}/ 90000 | consumed samples: {0:9d} | lm loss: {1:.6E} | loss scale: 1.0 |\n",
    "own words": "tick {0} :: energy={1:.4f} temperature=300.{0}\n",
    "json": '{{"rank": 0, "number": {0}, "objective": {1:.3f}}}\n',
}
TROUBLE = "upload of metrics failed (attempt 1/5): 503 Server Error\n"


def talk(text: str, ranks: int = 1) -> Chatter:
    return Chatter(text, lambda: (sample(text), ranks))


@pytest.mark.parametrize("form", STEPS.values(), ids=STEPS)
def test_talk_goes_on_after_overcome_trouble_and_not_after_the_end(form: str) -> None:
    steps = [form.format(number, 9 / (number + 1)) for number in range(400)]
    before, after = "".join(steps[:200]), "".join(steps[200:])
    text = before + TROUBLE + after + "KeyError: 'y'\n"
    chatter = talk(text)
    assert chatter.goes_on(len(before), sure=False)
    assert not chatter.goes_on(len(text) - 14, sure=False)


def test_the_last_words_of_a_process_may_stand_before_what_it_had_buffered() -> None:
    steps = "".join(f"step {number} loss 1.0\n" for number in range(300))
    text = steps + "KeyError: 'y'\n" + "".join(f"step {number} loss 1.0\n" for number in range(300, 500))
    assert not talk(text).goes_on(len(steps), sure=True)
    assert talk(text).goes_on(len(steps), sure=False)


def test_complaints_that_come_back_are_no_daily_talk() -> None:
    text = "".join(f"error {number}: retry failed\n" for number in range(200))
    assert talk(text).end() == 0


def test_the_time_of_the_last_talk() -> None:
    text = "".join(f"2026-11-20 10:{number // 60:02d}:{number % 60:02d} step {number}\n" for number in range(600))
    last = talk(text).last_time()
    assert last is not None
    assert talk(text.replace("2026-11-20 ", "")).last_time() is None


@given(st.text(max_size=3_000), st.integers(0, 64))
def test_any_text_has_an_end_of_talk(text: str, ranks: int) -> None:
    assert 0 <= talk(text, ranks).end() <= len(text)
