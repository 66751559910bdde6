"""Problem documents (RFC 9457), the error responses of the API."""

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field

MEDIA_TYPE = "application/problem+json"
API_PATHS = ("/api/", "/health/", "/metrics")


class ProblemField(BaseModel):
    """One invalid field."""

    field: str
    expected: str
    got: str | None = None


class Problem(BaseModel):
    """A problem document (RFC 9457). `errors` lists the invalid fields, if any."""

    type: str = "about:blank"
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str
    errors: list[ProblemField]


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for OpenAPI."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "model": Problem,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def is_api_path(path: str) -> bool:
    """Whether a path returns JSON instead of a page."""
    return path.startswith(API_PATHS)
