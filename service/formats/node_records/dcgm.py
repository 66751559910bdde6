"""DCGM: `dcgmi health -c -j` with added node name and time, policy violations, and the exporter's Xid gauge.

DCGM's records have no host name and, for health, no time: the sender adds `node` (or `hostname`) and `at`. The nesting
below `body` (entity, its id, systems) is traversed independent of intermediate levels.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.node_records.kinds import of_text, of_xid, rules

_BAD = {"warning": "warning", "failure": "critical", "fail": "critical", "warn": "warning"}
_FOUND_MOST = 200
_DEEPEST = 12
# The gauge is the last Xid of a GPU since its driver was loaded, and its time that of the reading, not of the Xid.
EXPORTER = "dcgm-exporter"
_XID_FIELD = "DCGM_FI_DEV_XID_ERRORS"


def is_it(obj: Mapping[str, Any]) -> bool:
    """Return whether the object is a record of DCGM: health, a policy violation, or the Xid field."""
    return _health(obj) is not None or "policy_violation" in obj or "violation" in obj or _XID_FIELD in obj


def _health(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    body = obj.get("body")
    if isinstance(body, dict) and "Overall Health" in body:
        return body
    return None


def read(obj: Mapping[str, Any], cluster: str | None) -> list[Mapping[str, Any]] | Skipped:
    """Return the native node events.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    common = {
        "cluster": field_reading.text(obj, "cluster") or cluster,
        "node": field_reading.text(obj, "node")
        or field_reading.text(obj, "hostname")
        or field_reading.text(obj, "Hostname"),
        "at": obj.get("at") or obj.get("timestamp") or obj.get("time"),
        "source": "dcgm",
    }
    body = _health(obj)
    if body is not None:
        return _from_health(body, common)
    if _XID_FIELD in obj:
        number = _xid(obj)
        if not number:
            return Skipped("DCGM: a GPU without an Xid since it was started")
        text = f"Xid {number}: {field_reading.text(obj, 'err_msg') or ''}".rstrip(": ")
        return [{**common, "source": EXPORTER, "kind": of_xid(number), "text": text, "gpu": _index(obj.get("gpu"))}]
    violation = obj.get("policy_violation", obj.get("violation"))
    details: Mapping[str, Any] = violation if isinstance(violation, dict) else {"condition": violation}
    condition = str(details.get("condition") or details.get("type") or "").lower().removeprefix("dcgm_policy_cond_")
    message = details.get("message") or obj.get("message") or obj.get("text")
    text = f"DCGM policy violation: {condition[:60]}" + (f": {message}" if message else "")
    if condition.startswith("xid"):
        number = field_reading.whole(details, "errnum") or field_reading.whole(details, "value")
        return [{**common, "kind": of_xid(number or 0), "text": f"{text} (Xid {number})", "gpu": _gpu(details, obj)}]
    kind = rules().policy.get(condition.split(" ")[0]) or of_text(text)
    return [{**common, "kind": kind, "text": text, "gpu": _gpu(details, obj)}]


def _from_health(body: Mapping[str, Any], common: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    overall = body["Overall Health"]
    value = str(overall.get("value") if isinstance(overall, dict) else overall)
    if value.lower() == "healthy":
        return [{**common, "kind": "healthy", "text": "DCGM overall health: Healthy"}]
    out: list[Mapping[str, Any]] = []
    for path, state, detail in _walk({name: part for name, part in body.items() if name != "Overall Health"}, ()):
        if len(out) >= _FOUND_MOST:
            break
        system = path[-1].lower()
        severity = _BAD[state.lower()]
        kind = next(
            (
                warned if severity == "warning" else kind
                for word, kind, warned in rules().health
                if system.startswith(word)
            ),
            None,
        )
        if kind is None:
            continue
        text = f"DCGM health {state}: {' / '.join(path)}" + (f": {detail}" if detail else "")
        place = next((n for n, part in enumerate(path) if part.upper() == "GPU"), None)
        gpu = _index(path[place + 1]) if place is not None and len(path) > place + 1 else None
        out.append({**common, "kind": kind, "text": text, "gpu": gpu, "severity": severity})
    if not out:
        out.append({**common, "kind": "gpu_degraded", "text": f"DCGM overall health: {value[:60]}"})
    return out


def _walk(part: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each named system with a warning or failure: path of names, state, detail."""
    if not isinstance(part, dict) or len(path) > _DEEPEST:
        return
    for name, inner in part.items():
        here = path if name in {"children", "Errors"} else (*path, str(name)[:60])
        if isinstance(inner, dict):
            state = inner.get("value")
            if isinstance(state, str) and state.lower() in _BAD and here != path:
                detail = inner.get("error") or inner.get("message") or ""
                yield here, state, str(detail)[:400]
            yield from _walk(inner, here)
        elif isinstance(inner, str) and inner.lower() in _BAD and name != "value":
            yield here, inner, ""


def _xid(obj: Mapping[str, Any]) -> int | None:
    """Read the gauge: a whole number, also as Prometheus writes values, `79.0` or as text."""
    value = obj[_XID_FIELD]
    try:
        number = float(value) if isinstance(value, str | float) else value
    except ValueError:
        number = value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return field_reading.whole({_XID_FIELD: number}, _XID_FIELD)


def _gpu(details: Mapping[str, Any], obj: Mapping[str, Any]) -> int | None:
    return _index(details.get("gpu", details.get("gpu_id", obj.get("gpu", obj.get("gpu_id")))))


def _index(value: Any) -> int | None:
    """Read a device index given as a number or as text."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_024:  # noqa: PLR2004 - more than on any machine
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 3:  # noqa: PLR2004 - as above
        return int(value)
    return None
