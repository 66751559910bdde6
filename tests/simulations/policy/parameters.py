"""The simulation's parameters, read from parameters.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field


class Parameter(BaseModel):
    """One parameter; `fixed` ones are the size of the experiment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    value: float = Field(gt=0)
    unit: str
    source: str = Field(min_length=1)
    fixed: bool = False

    @property
    def is_share(self) -> bool:
        """Whether it is limited to one."""
        return self.unit.startswith(("share", "chance"))


@dataclass(frozen=True, slots=True)
class Parameters:
    """All parameters by name."""

    by_name: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.by_name[name]

    def with_one(self, name: str, factor: float) -> "Parameters":
        """The same with one parameter multiplied; a share is limited to one."""
        value = self.by_name[name] * factor
        share = next(one for one in listed() if one.name == name).is_share
        return Parameters({**self.by_name, name: min(value, 1.0) if share else value})


@cache
def listed() -> tuple[Parameter, ...]:
    """Every parameter of the file, in its order."""
    text = files("tests.simulations.policy").joinpath("parameters.toml").read_text(encoding="utf-8")
    return tuple(Parameter.model_validate(row) for row in tomllib.loads(text)["parameter"])


def default() -> Parameters:
    """The file's values."""
    return Parameters({one.name: one.value for one in listed()})
