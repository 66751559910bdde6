"""Local outcomes combined with the published prior."""

import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers import taxonomy
from service.recommend import ranking, wording
from service.recommend.advise import CONSENT_RULES, OBJECTION_RULES, advise
from service.recommend.facts import Facts, History
from service.recommend.policy import built_in
from service.recommend.rule_chain import NO_OBJECTION, RuleResult
from tests.service.recommend.sample_facts import FAILED, LOST_GPU, NOW

CODES = tuple(code for code in taxonomy.load().mitigations if code != "M11")
COUNTS = st.dictionaries(st.sampled_from(CODES), st.integers(0, 10_000))
CAUSES = st.sampled_from(tuple(taxonomy.load().causes))
CATEGORIES = st.none() | st.sampled_from(tuple(taxonomy.load().categories))
WEIGHTS = st.just(0.0) | st.floats(1e-3, 1e6)


@given(CAUSES, CATEGORIES, WEIGHTS)
def test_without_local_outcomes_it_is_the_prior(cause: str, category: str | None, weight: float) -> None:
    verdict = replace(LOST_GPU, cause=cause, category=category)
    assert ranking.posterior(verdict, History(), weight) == pytest.approx(dict(ranking.prior(cause, category)))


@given(CAUSES, CATEGORIES, COUNTS, WEIGHTS, st.sampled_from(CODES), st.integers(1, 1_000))
def test_each_local_outcome_raises_its_own_and_none_of_the_others(
    cause: str, category: str | None, counts: dict[str, int], weight: float, code: str, more: int
) -> None:
    verdict = replace(LOST_GPU, cause=cause, category=category)
    before = ranking.posterior(verdict, History(counts), weight)
    after = ranking.posterior(verdict, History({**counts, code: counts.get(code, 0) + more}), weight)
    assert sum(after.values()) == pytest.approx(1)
    known = sum(counts.values()) + weight > 0
    assert after[code] >= before[code] - 1e-12
    if known and before[code] < 1 - 1e-9:
        assert after[code] > before[code]
    if known:
        assert all(after[other] <= before[other] + 1e-12 for other in CODES if other != code)


def test_mitigations_that_worked_before_are_named_and_rank_higher() -> None:
    result = {
        count: advise(LOST_GPU, FAILED, Facts(NOW, history=History({"M8": count} if count else {})), built_in())
        for count in (0, 9, 9_000)
    }
    shown = {count: {one.code: one for one in advice.mitigations} for count, advice in result.items()}
    assert [next(iter(one)) for one in (shown[0], shown[9_000])] == ["M1", "M1"]  # what is decided stands first
    assert list(shown[9_000])[1] == "M8"
    assert shown[9_000]["M8"].score > shown[9]["M8"].score > (shown[0]["M8"].score if "M8" in shown[0] else 0)
    assert not any("such failure" in one.text for one in shown[0].values())
    assert shown[9]["M8"].text.endswith("repaired. This resolved 9 such failures on this cluster.")
    assert "such failure" not in shown[9]["M1"].text
    assert (
        result[9]
        .reasons[-1]
        .endswith("Failures of this cause on this cluster were resolved by Node De-commission (9).")
    )
    assert result[9].reasons[:-1] == result[0].reasons  # it ranks what to do; no rule asks it
    assert (result[9].decision, result[9].mode) == (result[0].decision, result[0].mode)


TEXTS = tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def test_every_rule_has_texts_and_no_text_is_unused() -> None:
    names = {rule.name for rule in (*OBJECTION_RULES, *CONSENT_RULES)}
    assert names | {"*"} == set(TEXTS)
    for name in names:
        assert wording.describe(name, NO_OBJECTION)


def test_slots_are_filled() -> None:
    result = RuleResult("reached", {"count": 3, "most": 4, "side": "platform's"})
    assert wording.describe("resubmits of this job", result).startswith("3 of at most 4 ")
    with pytest.raises(KeyError):
        wording.describe("resubmits of this job", RuleResult("unknown"))
