"""GET /schemas/{name}: the published JSON Schemas (2020-12)."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from fastapi import APIRouter
from pydantic import BaseModel

from classifiers import taxonomy
from classifiers.fleet_evidence import evidence_weights
from service.contracts.event import JobCompletion
from service.contracts.node_event import NodeEvent
from service.contracts.verdict import VerdictBody
from service.errors import FieldError, NotFound
from service.web.auth import READ
from service.web.error_responses import Problem, answers

router = APIRouter(tags=["schemas"], dependencies=[READ])
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaNames(BaseModel):
    """The published schemas; always one page."""

    items: list[str]
    next_cursor: None = None


def _job_completion() -> dict[str, Any]:
    made = JobCompletion.model_json_schema(by_alias=True)
    made["properties"]["schema"] = {"const": "job-completion/1", "type": "string"}
    return made


def _verdict() -> dict[str, Any]:
    made = VerdictBody.model_json_schema(by_alias=True)
    axes = taxonomy.load()
    made["properties"]["cause"] = {"enum": list(axes.causes)}
    made["properties"]["category"] = {"enum": [*axes.categories, None]}
    made["properties"]["symptom"] = {"enum": [*axes.symptoms, None]}
    return made


def _node_event() -> dict[str, Any]:
    made = NodeEvent.model_json_schema(by_alias=True)
    made["properties"]["schema"] = {"const": "node-event/1", "type": "string"}
    made["properties"]["kind"] = {"enum": [*evidence_weights.load().kinds, None]}
    made["anyOf"] = [{"required": ["node"]}, {"required": ["nodes"]}]
    return made


def _labelled_case() -> dict[str, Any]:
    text = files("service.web").joinpath("schemas/labelled-case-1.json").read_text(encoding="utf-8")
    made: dict[str, Any] = orjson.loads(text)
    axes = taxonomy.load()
    known = {
        "side": list(axes.sides),
        "cause": list(axes.causes),
        "category": [*axes.categories, "none"],
        "symptom": [*axes.symptoms, "none"],
    }
    made["$defs"] |= {axis: {"enum": codes} for axis, codes in known.items()}
    return made


def _problem() -> dict[str, Any]:
    return Problem.model_json_schema()


_SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "job-completion/1": _job_completion,
    "verdict/1": _verdict,
    "node-event/1": _node_event,
    "labelled-case/1": _labelled_case,
    "problem/1": _problem,
}


@cache
def schema(name: str) -> dict[str, Any]:
    """A JSON Schema by name; `job-completion-1` is the same as `job-completion/1`.

    Raises:
        NotFound: no such schema.
    """
    known = {key.replace("/", "-"): key for key in _SCHEMAS}
    plain = known.get(name.replace("/", "-"))
    if plain is None:
        expected = "one of " + ", ".join(_SCHEMAS)
        raise NotFound(f"no schema {name[:80]}: expected {expected}", (FieldError("name", expected, name[:80]),))
    return {"$schema": DIALECT, **_SCHEMAS[plain](), "title": plain}


@router.get("/schemas", responses=answers(401, 403, 503))
def get_schemas() -> SchemaNames:
    """The names of the published schemas."""
    return SchemaNames(items=list(_SCHEMAS))


@router.get("/schemas/{name:path}", responses=answers(401, 403, 404, 422, 503))
def get_schema(name: str) -> dict[str, Any]:
    """One schema."""
    return schema(name)
