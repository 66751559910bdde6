"""Removes secrets from the texts that people and hooks send: comments, notes, reasons, errors, addresses.

It works on the whole body of a request and not on a list of fields, so that no field is forgotten.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from classifiers.redaction import redact
from service.errors import invalid

# These values are secrets of the service itself, needed as they are, and never stored in plain text.
NEEDED = frozenset({"lease_token", "form_token"})
# Policies are programs that are run and not stored; the other forms hold passwords.
UNCHANGED_PATHS = frozenset({"/login", "/account/password", "/api/v1/account:change-password", "/api/v1/policy:replay"})
_FORM = "application/x-www-form-urlencoded"


def without_secrets(body: bytes, content_type: str) -> bytes:
    """The body without secrets; the same bytes if there are none, or if it is neither JSON nor a form.

    JSON and forms are read in every encoding in which the application reads them.

    Raises:
        InvalidInput: the body has parts, which no route takes, or JSON of too many levels.
    """
    if not body:
        return body
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _FORM:
        return _form(body)
    if kind.startswith("multipart/"):
        raise invalid("Content-Type", f"application/json or {_FORM}", kind)
    try:
        given = _read(body)
        clean = _value(given)
    except RecursionError:
        raise invalid("(body)", "JSON of fewer levels", "too many levels") from None
    except ValueError:
        return body  # the application answers with the error
    return body if clean == given else json.dumps(clean).encode()


def _read(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)  # the parser of the application; it takes UTF-16, NaN and lone surrogates too


def _form(body: bytes) -> bytes:
    fields = parse_qsl(body.decode("latin-1"), keep_blank_values=True, errors="surrogateescape")
    clean = [(name, text if name in NEEDED else redact(text)) for name, text in fields]
    return body if clean == fields else urlencode(clean, errors="surrogateescape").encode()


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: one if name in NEEDED else _value(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_value(one) for one in value]
    return value
