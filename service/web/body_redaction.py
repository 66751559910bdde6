"""Removes secrets from the texts that people and hooks send: comments, notes, reasons, errors, addresses.

It works on the whole body of a request and not on a list of fields, so that no field is forgotten.
"""

from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from classifiers.redaction import redact

# These values are secrets of the service itself, needed as they are, and never stored in plain text.
NEEDED = frozenset({"lease_token", "form_token"})
# Policies are programs that are run and not stored; the other forms hold passwords.
UNCHANGED_PATHS = frozenset({"/login", "/account/password", "/api/v1/account:change-password", "/api/v1/policy:replay"})
_FORM = "application/x-www-form-urlencoded"


def without_secrets(body: bytes, content_type: str) -> bytes:
    """The body without secrets; the same bytes if there are none, or if it is neither JSON nor a form."""
    if not body:
        return body
    if content_type.partition(";")[0].strip().lower() == _FORM:
        return _form(body)
    if body.lstrip()[:1] not in {b"{", b"["}:
        return body
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body  # the application answers with the error
    clean = _value(given)
    return body if clean == given else orjson.dumps(clean)


def _form(body: bytes) -> bytes:
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="surrogateescape")
    except ValueError:
        return body
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
