"""Every rule has words for all that it can say."""

import tomllib
from importlib.resources import files

import pytest

from service.recommend import reasons
from service.recommend.advise import MAY_FORBID, MAY_OBJECT
from service.recommend.rule_chain import FINE, Ruling

TEXTS = tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def test_every_rule_has_its_words_and_no_words_are_left_over() -> None:
    names = {rule.name for rule in (*MAY_OBJECT, *MAY_FORBID)}
    assert names | {"*"} == set(TEXTS)
    for name in names:
        assert reasons.said(name, FINE)


def test_slots_are_filled() -> None:
    ruling = Ruling("reached", {"count": 3, "most": 4, "side": "platform's"})
    assert reasons.said("resubmits of this job", ruling).startswith("3 of at most 4 ")
    with pytest.raises(KeyError):
        reasons.said("resubmits of this job", Ruling("unheard of"))
