"""The worked examples, one a format, and the shortest way to read a changed one."""

from pathlib import Path
from typing import Any

import orjson

from service.contracts.event import JobCompletion
from service.errors import UnreadableRecord
from service.formats.field_reading import Skipped
from service.formats.recognise import parse

FOLDER = Path(__file__).parents[2] / "data" / "formats"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return loaded


def read(obj: Any, headers: dict[str, str] | None = None, cluster: str | None = "lab") -> JobCompletion | Skipped:
    return parse(orjson.dumps(obj), [(k, v.encode()) for k, v in (headers or {}).items()], cluster=cluster)


def event(obj: Any, headers: dict[str, str] | None = None, cluster: str | None = "lab") -> JobCompletion:
    found = read(obj, headers, cluster)
    assert isinstance(found, JobCompletion), found
    return found


def skipped(obj: Any) -> str:
    found = read(obj)
    assert isinstance(found, Skipped), found
    return found.reason


def wrong_field(obj: Any) -> str:
    """The field that the record is refused for, or the first one that is dropped; optional fields are dropped."""
    try:
        [problem, *_] = event(obj).intake_problems
    except UnreadableRecord as error:
        return error.errors[0].field
    return problem.partition(": dropped, expected ")[0]
