"""Facts as plain JSON and back: stored beside the advice that stood on them, so that it can be asked again later.

Only what differs from knowing nothing is written.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from service.recommend.facts import Facts


def to_wire(facts: Facts) -> dict[str, Any]:
    """The facts as JSON has them; times as RFC 3339."""
    return _object(facts)


def from_wire(data: Mapping[str, Any]) -> Facts:
    """What `to_wire` was given.

    Raises:
        KeyError, ValueError, TypeError: it was not made by `to_wire`.
    """
    made: Facts = _made(Facts, data)
    return made


def _object(value: Any) -> dict[str, Any]:
    out = {}
    kind: type = type(value)
    for name, default in _fields(kind):
        given = getattr(value, name)
        if given is not default and given != default:
            out[name] = _plain(given)
    return out


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, _default(one)) for one in fields(kind))


def _default(one: "Field[Any]") -> Any:
    if one.default is not MISSING:
        return one.default
    return one.default_factory() if one.default_factory is not MISSING else MISSING


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _made(kind: type, data: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _value(hints[name], given) for name, given in data.items()})


def _value(kind: Any, given: Any) -> Any:
    if given is None:
        return None
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        [inner] = [one for one in get_args(kind) if one is not type(None)]
        return _value(inner, given)
    if origin is tuple:
        return tuple(_value(get_args(kind)[0], item) for item in given)
    if origin is not None and isinstance(given, Mapping):
        inner = get_args(kind)[1]
        return {name: _value(inner, item) for name, item in given.items()}
    if kind is datetime:
        return datetime.fromisoformat(given)
    return _made(kind, given) if is_dataclass(kind) and isinstance(kind, type) else given
