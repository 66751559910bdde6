"""What a field should be, in words that continue "expected ...", from an error of pydantic's validation."""

import re
from typing import Any

from pydantic_core import ErrorDetails

_TIMES = frozenset({"datetime_parsing", "datetime_from_date_parsing", "datetime_type"})
_TIME = 'a time as RFC 3339 with zone, such as "2026-11-20T03:41:57Z"'
_DETAILS = re.compile(
    r", unable to (?:parse|interpret) .*|, got a number with a fractional part|, not \d+$"
    r"| or (?:object to extract fields from|instance of \w+)$"
)
_BEGINNING = re.compile(r"^(?:Input|String|List|Dictionary|Tuple|Set|Data|Value) should (?:be|have) ")
_PLAIN = {"a valid integer": "a whole number", "a valid dictionary": "a JSON object"}
_BY_KIND = {
    "missing": "a value, because it is required",
    "extra_forbidden": "a known field",
    "timezone_aware": _TIME,
}


def expected(problem: ErrorDetails) -> str:
    """What the field of an error should be.

    Args:
        problem: one entry of `ValidationError.errors()`.
    """
    context, kind = problem.get("ctx", {}), problem["type"]
    raised: Any = context.get("error")
    if isinstance(raised, Exception):  # of a validator, whose text is such words
        return str(raised)
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    if kind in _TIMES:
        return _TIME if raised is None else f"{_TIME} ({raised})"
    if kind == "string_pattern_mismatch":
        return f"a text of the form {context.get('pattern')}"
    words = _BEGINNING.sub("", _DETAILS.sub("", problem["msg"]))
    return _PLAIN.get(words, words)
