"""The three axes (cause, failure category, distributed symptom), their sides and mitigations, read from taxonomy.toml.

Sources: Gao et al., ICSE-SEIP 2023 (sides, 22 causes, `PlatformSymptom`, mitigations); Zhang et al., ICSE 2020
(20 failure categories); Liu et al., TOSEM 2023 (30 distributed symptoms with fix patterns).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Side = Literal["hardware", "system", "user"]
PlatformSymptom = Literal["crash", "hang", "slowdown", "submission_failure", "abnormal", "unavailability", "data_loss"]
RetryOutlook = Literal["helps", "helps_elsewhere", "after_repair", "futile"]
Decision = Literal["resubmit_now", "resubmit_after", "hold", "stop", "ask"]
Role = Literal["initiating", "cascade", "teardown", "context"]

SIDES: tuple[Side, ...] = ("hardware", "system", "user")
# What is labelled and predicted of a failure: beside the codes of the three axes, the side and what a retry brings.
AXES = ("side", "cause", "category", "symptom", "retry")


@dataclass(frozen=True, slots=True)
class Entry:
    """One code of an axis.

    `share` is the published share in percent, None where the paper's figure is unknown; `extra` holds the other
    fields of its axis (a cause's `side` and `mitigations`, a category's `actions` and `mitigations`, a symptom's
    `fixes`).
    """

    code: str
    title: str
    definition: str
    share: float | None
    source: str
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """All axes by code, in the order of the papers' tables."""

    version: int
    sides: Mapping[str, Entry]
    causes: Mapping[str, Entry]
    categories: Mapping[str, Entry]
    symptoms: Mapping[str, Entry]
    mitigations: Mapping[str, Entry]

    def side_of(self, cause: str) -> Side:
        """The side a cause belongs to.

        Raises:
            KeyError: the code is not a cause.
        """
        side: Side = self.causes[cause].extra["side"]
        return side

    def title_of(self, code: str) -> str:
        """The title of a cause, category, symptom or mitigation; the code itself if it is unknown."""
        for axis in (self.causes, self.categories, self.symptoms, self.mitigations):
            if code in axis:
                return axis[code].title
        return code


def _axis(rows: list[dict[str, Any]]) -> dict[str, Entry]:
    known = {"code", "title", "definition", "share", "source"}
    entries = {
        row["code"]: Entry(
            code=row["code"],
            title=row["title"],
            definition=row.get("definition", row["title"]),
            share=row.get("share"),
            source=row["source"],
            extra={key: value for key, value in row.items() if key not in known},
        )
        for row in rows
    }
    if len(entries) != len(rows):
        raise ValueError("taxonomy.toml: an axis has a code twice")
    return entries


@cache
def load() -> Taxonomy:
    """The packaged taxonomy; read once.

    Raises:
        ValueError: the data file contradicts itself.
    """
    data = tomllib.loads(files("classifiers").joinpath("taxonomy.toml").read_text(encoding="utf-8"))
    return Taxonomy(
        version=data["version"],
        sides=_axis(data["side"]),
        causes=_axis(data["cause"]),
        categories=_axis(data["category"]),
        symptoms=_axis(data["symptom"]),
        mitigations=_axis(data["mitigation"]),
    )
