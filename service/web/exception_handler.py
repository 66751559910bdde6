"""The response to an exception: a problem document for the API, an error page for browsers."""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import iter_route_contexts
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from service import validation_words
from service.errors import DAMAGED, DamagedData, FaultlineError, FieldError, TooManyRequests, Unauthorized
from service.sql.types import clean
from service.web.error_responses import MEDIA_TYPE, Problem, ProblemField, is_api_path
from service.web.pages import navigation
from service.web.pages.templating import render

_GOT = 80  # characters of an invalid value that are shown
# Fields whose values no response repeats, also where their name is misspelt.
_SECRET_FIELD = re.compile(r"(?i)pas+w|pwd|secret|token|^code$|^repeated$")
# What is wrong in a request is found before: these are of stored values, such as an unknown state or a year above 9999.
_NO_ANSWER = (ValidationError, ResponseValidationError, OverflowError)
_log = logging.getLogger(__name__)


def respond(request: Request, error: Exception) -> Response:
    """The response to an exception. Unexpected errors are logged, without the request's content."""
    headers: dict[str, str] = {}
    errors: Sequence[FieldError] = ()
    if isinstance(error, _NO_ANSWER):
        _log.error("%s %s: the stored values make no valid answer", request.method, request.url.path, exc_info=error)
        error = DamagedData(DAMAGED)
    if isinstance(error, FaultlineError):
        status, title, detail, errors = error.status, error.title, error.detail, error.errors
        if isinstance(error, TooManyRequests):
            headers["Retry-After"] = str(error.retry_after_s)
        if error.is_logged:
            _log.warning("%s %s: %s", request.method, request.url.path, detail)
    elif isinstance(error, RequestValidationError):
        status, title = HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid input"
        errors = _places(error.errors())
        detail = "; ".join(f"{place.field}: expected {place.expected}" for place in errors)
    elif isinstance(error, HTTPException):
        status, detail = error.status_code, error.detail
        title = HTTPStatus(status).phrase.capitalize()
        headers = dict(error.headers or {})
        if status == HTTPStatus.NOT_FOUND:
            detail = f"{request.url.path} does not exist"
        elif status == HTTPStatus.BAD_REQUEST:  # the framework reports an undecodable body this way
            status, title = HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid input"
            detail = "the body cannot be read: expected JSON in UTF-8"
            errors = (FieldError("(body)", "JSON in UTF-8"),)
        elif status == HTTPStatus.METHOD_NOT_ALLOWED:
            detail = f"{request.method} is not supported at {request.url.path}"
            headers["Allow"] = ", ".join(_allowed(request)) or headers.get("Allow", "")
            errors = (FieldError("method", headers["Allow"] or "another method", request.method[:_GOT]),)
    else:
        status, title = HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error"
        detail = "an internal error occurred; details are in the service's log"
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="faultline"'
    if not is_api_path(request.url.path):
        return _as_page(request, error, status, title, detail, errors, headers)
    problem = Problem(
        title=title,
        status=status,
        detail=clean(detail),
        instance=clean(request.url.path),
        errors=[
            ProblemField(field=clean(e.field), expected=clean(e.expected), got=None if e.got is None else clean(e.got))
            for e in errors
        ],
    )
    body = orjson.dumps(problem.model_dump(), default=str)
    return Response(b"" if request.method == "HEAD" else body, status, headers, MEDIA_TYPE)


def _allowed(request: Request) -> list[str]:
    """The methods of a path; its methods may have a route each, of which the framework names the first alone."""
    routes = iter_route_contexts(request.app.routes)
    matching = (route for route in routes if route.methods and route.path_regex.match(request.scope["path"]))
    methods = {method for route in matching for method in route.methods or ()}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def _as_page(
    request: Request,
    error: Exception,
    status: int,
    title: str,
    detail: str,
    errors: Sequence[FieldError],
    headers: Mapping[str, str],
) -> Response:
    if isinstance(error, Unauthorized) and request.method in {"GET", "HEAD"}:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        where = "/login" if wanted == "/" else f"/login?next={quote(wanted, safe='')}"
        return RedirectResponse(where, HTTPStatus.SEE_OTHER)
    # No route has this address, so nothing has authorised the caller: the page keeps the navigation all the same.
    principal = getattr(request.state, "principal", None) or getattr(request.state, "identified", None)
    request.state.principal = principal
    context = {
        "title": title,
        "detail": detail.rstrip("."),
        "errors": errors,
        "status": int(status),
        "page_of_area": navigation.page_of_area(principal, request.url.path),
    }
    return render(request, "error.html", context, status=status, headers=headers)


def _places(found: Sequence[Any]) -> tuple[FieldError, ...]:
    places = []
    for problem in found[:20]:
        where = [str(part) for part in problem["loc"]]
        if where and where[0] in {"query", "path", "body", "header", "cookie"} and len(where) > 1:
            where = where[1:]
        expected = validation_words.expected(problem)
        got = problem.get("input")
        hidden = problem["type"] == "missing" or any(_SECRET_FIELD.search(part) for part in where)
        shown = None if hidden or not isinstance(got, str | int | float | bool) else repr(got)[:_GOT]
        places.append(FieldError(".".join(where), expected, shown))
    return tuple(places)
