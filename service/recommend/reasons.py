"""The chain of reasons as text; the texts are in reasons.toml."""

import tomllib
from functools import cache
from importlib.resources import files

from service.contracts.advice import EvaluatedRule
from service.recommend.rule_chain import RuleResult, Trace


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(files("service.recommend").joinpath("reasons.toml").read_text(encoding="utf-8"))


def describe(name: str, result: RuleResult) -> str:
    """The text of a rule's result.

    Raises:
        KeyError: the rule has no such text, or the text has a slot that the rule does not fill.
    """
    texts = _texts()
    of_all = texts["*"]
    text = of_all.get(result.text) or texts[name][result.text]
    return text.format_map(result.slots) if result.slots else text


def describe_all(trace: Trace) -> tuple[EvaluatedRule, ...]:
    """Every evaluated rule, its text, and whether it set the decision or the mode."""
    return tuple(
        EvaluatedRule(name, describe(name, result), decided) if result.slots else _plain(name, result.text, decided)
        for name, result, decided in trace
    )


@cache
def _plain(name: str, text: str, decided: bool) -> EvaluatedRule:  # noqa: FBT001 - a key
    return EvaluatedRule(name, describe(name, RuleResult(text)), decided)
