"""Models that produced verdicts, shared by page and API."""

from dataclasses import dataclass
from datetime import datetime

from service.feedback.corrected_verdict import PERSON
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One model with one version of the rules. The times are None if it has produced no verdict yet.

    `person`: verdicts set by people instead of a model. `in_use`: the model loaded now.
    """

    model: str
    rules: str
    verdicts: int
    first_at: datetime | None
    last_at: datetime | None
    in_use: bool
    person: bool = False


def versions(services: Services) -> tuple[ModelVersion, ...]:
    """All models that produced verdicts, the loaded model first, then the most recently used.

    Every version of a verdict counts for the model that produced it.
    """
    loaded = None if services.model is None else (services.model.name()[:100], services.model.rules()[:100])
    with services.reading() as reading:
        used = reading.verdict_seals.models()
    found = []
    people = [one for one in used if one.model == PERSON]
    for one in used:
        if one.model != PERSON:
            at = (one.first_at, one.last_at)
            found.append(ModelVersion(one.model, one.rules, one.verdicts, *at, (one.model, one.rules) == loaded))
    if loaded is not None and not any(one.in_use for one in found):
        found.insert(0, ModelVersion(*loaded, 0, None, None, in_use=True))
    if people:
        first, last = min(one.first_at for one in people), max(one.last_at for one in people)
        total = sum(one.verdicts for one in people)
        found.append(ModelVersion(PERSON, "", total, first, last, in_use=False, person=True))
    return tuple(sorted(found, key=lambda one: not one.in_use))
