"""Every rule has a text for each of its results."""

import tomllib
from importlib.resources import files

import pytest

from service.recommend import reasons
from service.recommend.advise import CONSENT_RULES, OBJECTION_RULES
from service.recommend.rule_chain import NO_OBJECTION, RuleResult

TEXTS = tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def test_every_rule_has_texts_and_no_text_is_unused() -> None:
    names = {rule.name for rule in (*OBJECTION_RULES, *CONSENT_RULES)}
    assert names | {"*"} == set(TEXTS)
    for name in names:
        assert reasons.describe(name, NO_OBJECTION)


def test_slots_are_filled() -> None:
    result = RuleResult("reached", {"count": 3, "most": 4, "side": "platform's"})
    assert reasons.describe("resubmits of this job", result).startswith("3 of at most 4 ")
    with pytest.raises(KeyError):
        reasons.describe("resubmits of this job", RuleResult("unknown"))
