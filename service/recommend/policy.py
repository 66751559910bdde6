"""The policy as data: rules read from TOML and checked, place by place."""

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from classifiers.taxonomy import Decision, RetryOutlook, Side
from service.errors import ConfigurationError
from service.events import Status, as_unreadable


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Conditions(_Checked):
    """What must hold for a rule to decide; a condition that is absent always holds."""

    status: tuple[Status, ...] | None = None
    side: tuple[Side, ...] | None = None
    cause: tuple[str, ...] | None = Field(default=None, description='codes; "HW.*" matches every code below HW')
    category: tuple[str, ...] | None = None
    retry_outlook: tuple[RetryOutlook, ...] | None = None
    abstained: bool | None = None
    suspect_node: bool | None = None


class Rule(_Checked):
    """One rule: where all of `when` holds, `decision` is taken and `says` is the reason shown."""

    name: str = Field(min_length=1)
    when: Conditions = Conditions()
    decision: Decision
    says: str = Field(min_length=1)
    source: str = Field(min_length=1)


class Policy(_Checked):
    """A checked policy. `prior_weight` is how many local outcomes the papers' figures weigh."""

    version: str = Field(min_length=1)
    prior_weight: float = Field(ge=0)
    rule: tuple[Rule, ...] = Field(min_length=1)


def parse(text: str, name: str = "policy.toml") -> Policy:
    """A policy from TOML text.

    Raises:
        ConfigurationError: names each place that is wrong and what was expected there.
    """
    try:
        return Policy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: not TOML: {error}") from None
    except ValidationError as error:
        places = as_unreadable(error).errors
        detail = "; ".join(f"{place.field}: {place.expected}" for place in places)
        raise ConfigurationError(f"{name}: {detail}", places) from None


@cache
def built_in() -> Policy:
    """The policy of the package."""
    return parse(files("service.recommend").joinpath("policy.toml").read_text(encoding="utf-8"))


def load(path: Path | None) -> Policy:
    """The policy of a file, or the built-in one where `path` is None.

    Raises:
        ConfigurationError: the file can't be read, or a place in it is wrong.
    """
    if path is None:
        return built_in()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"policy file {path}: {error}") from None
    return parse(text, str(path))
