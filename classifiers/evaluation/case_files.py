"""Files of labelled cases for measuring: labelled-case/1 lines, or a flat format."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from classifiers.case_builder import build_case, nests_deeper, whole_number
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import AXES, DatasetError, LabelledCase, Labels

_NODES_MOST: Final = 100_000  # as for an event
_STATUS: Final = {"oom_killed": "out_of_memory", "pending": "failed"}


def from_measured(raw: Mapping[str, Any], place: str) -> LabelledCase:
    """A case of the flat format: id, group, event, log, side, side_ok, cause, cause_ok and so on.

    An axis that is absent, or that a case's `set` leaves out (a `symptom` case has no trusted cause), is not measured.
    `medium` (log, report) and `decidable` (whether event and log suffice to tell the side) become provenance.

    Raises:
        DatasetError: a field is missing or not as expected.
    """
    _check(raw, place)
    only_symptom = raw.get("set") == "symptom"
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis in AXES:
        label = raw.get(axis)
        left_out = (only_symptom and axis in {"side", "cause", "retry"}) or (not only_symptom and axis == "symptom")
        best[axis] = None if left_out else label
        allowed[axis] = () if left_out or label is None else tuple(raw.get(f"{axis}_ok") or [label])
    event = _event(raw)
    return LabelledCase(
        id=raw["id"],
        group=str(raw.get("group") or raw["id"]),
        kind=str(raw.get("group") or raw["id"]),
        raw=build_case(event),
        labels=Labels(best=best, allowed=allowed, root_rank=raw.get("root_rank"), root_line=raw.get("root_line")),
        provenance={"origin": "measured"} | {key: raw[key] for key in ("medium", "decidable") if key in raw},
        event=event,
    )


def _event(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The event of a case whose values were checked."""
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
    return event


def _check(raw: Mapping[str, Any], place: str) -> None:
    """Check the types of a case's values.

    Raises:
        DatasetError: one has another type, or the case nests without end.
    """
    if nests_deeper(raw, labelled_cases.DEEPEST):
        raise DatasetError(place, "case", f"JSON nested at most {labelled_cases.DEEPEST} levels deep", raw)
    event = raw.get("event") or {}
    if not isinstance(event, dict):
        raise DatasetError(place, "event", "an object", event)
    nodes = event.get("n_nodes") or 0
    text_or_none = "a text, or null"
    checks = (
        *((key, isinstance(raw.get(key), str), "a text", raw.get(key)) for key in ("id", "log")),
        ("event.status", isinstance(event.get("status", ""), str), "a text", event.get("status")),
        ("event.n_nodes", whole_number(nodes) in range(_NODES_MOST + 1), f"at most {_NODES_MOST} nodes", nodes),
        *((axis, _is_text_or_none(raw.get(axis)), text_or_none, raw.get(axis)) for axis in AXES),
        *((f"{axis}_ok", _are_texts(raw.get(f"{axis}_ok")), "a list of texts", raw.get(f"{axis}_ok")) for axis in AXES),
        ("root_rank", _is_whole_or_none(raw.get("root_rank")), "a whole number, or null", raw.get("root_rank")),
        ("root_line", _is_text_or_none(raw.get("root_line")), text_or_none, raw.get("root_line")),
        ("medium", _is_text_or_none(raw.get("medium")), text_or_none, raw.get("medium")),
    )
    for field, good, expected, got in checks:
        if not good:
            raise DatasetError(place, field, expected, got)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_whole_or_none(value: Any) -> bool:
    return value is None or whole_number(value) is not None


def _are_texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def read_cases(lines: Iterable[bytes], name: str) -> list[LabelledCase]:
    """The cases of the lines of a file of labelled-case/1 lines or of the flat format for measuring.

    Raises:
        DatasetError: a line is neither; names the place.
    """
    cases = []
    for place, raw in labelled_cases.json_lines(lines, name):
        flat = isinstance(raw, dict) and "log" in raw and "labels" not in raw
        cases.append(from_measured(raw, place) if flat else labelled_cases.parse(raw, place))
    return cases
