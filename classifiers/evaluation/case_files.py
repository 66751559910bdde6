"""Files of labelled cases for measuring: labelled-case/1 lines, or a flat format."""

from collections.abc import Mapping
from typing import Any, Final

from classifiers.case_builder import build_case
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import AXES, DatasetError, LabelledCase, Labels

_STATUS: Final = {"oom_killed": "out_of_memory", "pending": "failed"}


def from_measured(raw: Mapping[str, Any], place: str) -> LabelledCase:
    """A case of the flat format: id, group, event, log, side, side_ok, cause, cause_ok and so on.

    An axis that is absent, or that a case's `set` leaves out (a `symptom` case has no trusted cause), is not measured.
    `medium` (log, report) and `decidable` (whether event and log suffice to tell the side) become provenance.

    Raises:
        DatasetError: a field is missing or not as expected.
    """
    for key in ("id", "log"):
        if not isinstance(raw.get(key), str):
            raise DatasetError(place, key, "a text", raw.get(key))
    known = raw.get("event") or {}
    status = known.get("status", "failed")
    event: dict[str, Any] = {"status": _STATUS.get(status, status), "logs": [{"rank": 0, "tail": raw["log"]}]}
    for key in ("exit_code", "signal", "scheduler", "reason", "framework"):
        if known.get(key) is not None:
            event[key] = known[key]
    if known.get("n_gpus"):
        event["gpus"] = known["n_gpus"]
    if known.get("n_nodes"):
        event["nodes"] = [f"node{number}" for number in range(1, known["n_nodes"] + 1)]
    only_symptom = raw.get("set") == "symptom"
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis in AXES:
        label = raw.get(axis)
        left_out = (only_symptom and axis in {"side", "cause", "retry"}) or (not only_symptom and axis == "symptom")
        best[axis] = None if left_out else label
        allowed[axis] = () if left_out or label is None else tuple(raw.get(f"{axis}_ok") or [label])
    return LabelledCase(
        id=raw["id"],
        group=str(raw.get("group") or raw["id"]),
        kind=str(raw.get("group") or raw["id"]),
        raw=build_case(event),
        labels=Labels(best=best, allowed=allowed, root_rank=raw.get("root_rank"), root_line=raw.get("root_line")),
        provenance={"origin": "measured"} | {key: raw[key] for key in ("medium", "decidable") if key in raw},
        event=event,
    )


def read_cases(data: bytes, name: str) -> list[LabelledCase]:
    """The cases of a file of labelled-case/1 lines or of the flat format for measuring.

    Raises:
        DatasetError: a line is neither; names the place.
    """
    cases = []
    for place, raw in labelled_cases.json_lines(data.splitlines(), name):
        flat = isinstance(raw, dict) and "log" in raw and "labels" not in raw
        cases.append(from_measured(raw, place) if flat else labelled_cases.parse(raw, place))
    return cases
