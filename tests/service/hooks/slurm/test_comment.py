import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.hooks.slurm import comment as words


@pytest.mark.parametrize(
    ("comment", "wish"),
    [
        (None, None),
        ("paper run", None),
        ("faultline/resubmit=auto", "auto"),
        ("paper run; faultline/resubmit=never, thanks", "never"),
        ("xfaultline/resubmit=auto", None),
        ("faultline/resubmit=auto faultline/resubmit=never", "never"),
        ("faultline/resubmit=AUTO", "AUTO"),
    ],
)
def test_the_owners_opt_in_is_a_separate_word_of_the_comment(comment: str | None, wish: str | None) -> None:
    assert words.opt_in(comment) == wish


def test_a_new_request_replaces_an_earlier_one_and_names_the_checkpoint() -> None:
    before = "mine faultline/resume=old faultline/request=r1"
    assert words.with_request(before, "r2", "/ckpt/100") == "mine faultline/resume=/ckpt/100 faultline/request=r2"
    assert words.with_request(before, "r2", "/with blank") == "mine faultline/request=r2"


@given(st.text(max_size=80))
def test_the_comment_of_the_owner_stays_and_the_request_follows_it(comment: str) -> None:
    made = words.with_request(comment, "r7")
    assert words.comment_fields(made)["faultline/request"] == "r7"
    assert made.split()[-1] == "faultline/request=r7"
    assert made.isprintable()
    assert words.with_request(made, "r7") == made
    kept = [word for word in comment.split() if word.isprintable() and "faultline/" not in word]
    assert all(word in made for word in kept)
