"""Labels that wait for a second person before anything is learned from them. Pure, but for reading earlier labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from classifiers import signatures
from service.db.session import ReadSession
from service.failures.records import FailureRow
from service.feedback.records import Labels

# Judgement: a label that one person gives to more failures than this at once waits for a second person.
MOST_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True)
class LabelHold:
    """Why a label waits for a second person; `verdict_waits`: until then it changes no verdict either."""

    reason: str
    verdict_waits: bool


def held_because(
    reading: ReadSession, row: FailureRow, verdict: Mapping[str, Any], given: Labels, *, actor: str, at_once: int
) -> LabelHold | None:
    """Why a label waits for a second person; None if it does not.

    Args:
        reading: the earlier labels.
        row: the failure.
        verdict: its verdict, as verdict/1.
        given: what the person said.
        actor: the person. What they alone said earlier does not count: everybody may correct themselves.
        at_once: the number of failures that get this label in one action.
    """
    entry = contradicted_signature(verdict, given)
    if entry is not None:
        return LabelHold(f"it contradicts the decisive signature {entry}", verdict_waits=at_once > 1)
    found = reading.feedback.labels_of_group(row.fingerprint, without=row.id)
    earlier = [one for one in found if one.who != actor or one.people > 1]
    others = [one for one in earlier if _contradict(one.labels, given)]
    if len(others) > len(earlier) / 2:
        return LabelHold(
            f"it contradicts {len(others)} earlier labels of its group", verdict_waits=at_once > MOST_AT_ONCE
        )
    if at_once > MOST_AT_ONCE:
        return LabelHold(f"it was given to {at_once} failures at once", verdict_waits=True)
    return None


def _contradict(first: Labels, second: Labels) -> bool:
    """Whether two labels name different sides or causes; a side alone contradicts no cause of this side."""
    named = ((first.side, second.side), (first.cause, second.cause))
    return any(None not in both and both[0] != both[1] for both in named)


def contradicted_signature(verdict: Mapping[str, Any], given: Labels) -> str | None:
    """The decisive signature on the first initiating line that rules out the given cause or side; None without one."""
    lines = verdict.get("evidence") or ()
    first = next((line for line in lines if line.get("role") == "initiating" and not line.get("note")), None)
    entry = None if first is None else signatures.packaged().by_id.get(str(first.get("signature")))
    if entry is None or entry.strength != "decisive" or not entry.causes:
        return None
    if given.cause is not None:
        return None if given.cause in entry.causes else entry.id
    sides = {_SIDES[code.split(".")[0]] for code in entry.causes}
    return None if given.side is None or given.side in sides else entry.id


_SIDES: Final = {"HW": "hardware", "SYS": "system", "USER": "user"}
