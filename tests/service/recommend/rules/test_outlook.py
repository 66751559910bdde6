"""Conditions of the policy's own rules."""

from dataclasses import replace

import pytest

from service.errors import ConfigurationError
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.rules.outlook import matches
from tests.service.recommend.sample_facts import ALONE, FAILED, PASSING


def test_a_pattern_matches_what_is_below_it_only() -> None:
    assert matches("HW.GPU.1", ("HW.*",))
    assert not matches("HWX.1", ("HW.*",))
    assert not matches(None, ("HW.*",))


def test_a_rule_may_look_at_the_confidence() -> None:
    careful = policy.parse(
        'version = "1"\n[[rule]]\nname = "careful"\nwhen = { confidence_below = 0.98 }\n'
        'decision = "ask"\nsays = "Not sure enough."\nsource = "us"\n'
    )
    assert advise(PASSING, FAILED, ALONE, careful).rule == "careful"
    assert advise(replace(PASSING, confidence=0.99), FAILED, ALONE, careful).rule != "careful"


@pytest.mark.parametrize(
    ("exit_code", "signal", "applies"),
    [(42, None, True), (None, 11, True), (139, None, True), (1, None, False), (None, None, False)],
)
def test_a_rule_may_name_exit_codes(exit_code: int | None, signal: int | None, applies: bool) -> None:
    agreed = policy.parse(
        'version = "1"\n[[rule]]\nname = "agreed"\nwhen = { exit_code = [42, 139] }\n'
        'decision = "stop"\nsays = "The program asks for no retry."\nsource = "us"\n'
    )
    job = replace(FAILED, exit_code=exit_code, signal=signal)
    assert (advise(PASSING, job, ALONE, agreed).rule == "agreed") is applies


@pytest.mark.parametrize("codes", ["[256]", "[-9]", '["42"]', "42"])
def test_exit_codes_of_a_rule_are_those_of_a_process(codes: str) -> None:
    with pytest.raises(ConfigurationError, match=r"when\.exit_code"):
        policy.parse(
            f'version = "1"\n[[rule]]\nname = "a"\nwhen = {{ exit_code = {codes} }}\n'
            'decision = "stop"\nsays = "No."\nsource = "us"\n'
        )


def test_undecided_verdicts_are_never_automatic() -> None:
    bold = policy.parse(
        'version = "1"\n[[rule]]\nname = "all"\ndecision = "resubmit_now"\nsays = "Bold."\nsource = "us"\n'
    )
    for verdict in (replace(PASSING, abstained=True), replace(PASSING, disputed=True)):
        advice = advise(verdict, FAILED, ALONE, bold)
        assert (advice.mode, advice.resubmit) == ("advise", False)
    assert advise(PASSING, replace(FAILED, status="cancelled"), ALONE, bold).mode == "advise"
