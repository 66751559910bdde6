"""Every rule has words for all that it can say."""

import tomllib
from importlib.resources import files

import pytest

from service.recommend import reasons
from service.recommend.advise import CONSENT_RULES, OBJECTION_RULES
from service.recommend.rule_chain import NO_OBJECTION, RuleResult

TEXTS = tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def test_every_rule_has_its_words_and_no_words_are_left_over() -> None:
    names = {rule.name for rule in (*OBJECTION_RULES, *CONSENT_RULES)}
    assert names | {"*"} == set(TEXTS)
    for name in names:
        assert reasons.said(name, NO_OBJECTION)


def test_slots_are_filled() -> None:
    result = RuleResult("reached", {"count": 3, "most": 4, "side": "platform's"})
    assert reasons.said("resubmits of this job", result).startswith("3 of at most 4 ")
    with pytest.raises(KeyError):
        reasons.said("resubmits of this job", RuleResult("unheard of"))
