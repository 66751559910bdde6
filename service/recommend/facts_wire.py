"""Facts as JSON and back. They are stored with the advice, so that the decision can be replayed.

Facts with their default value are left out.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from service.recommend.facts import Facts, Lineage

# Facts that earlier releases stored and no rule asks for.
_FORMER: Mapping[type, frozenset[str]] = {
    Lineage: frozenset({"gpu_hours_spent", "last_progress_step", "last_checkpoint", "last_outcome"})
}


def changed_facts(facts: Facts) -> dict[str, Any]:
    """The facts that differ from their defaults, as objects that orjson serializes (it supports dataclasses)."""
    changed = {}
    for name, default in _DEFAULTS:
        given = getattr(facts, name)
        if given is not default and given != default:
            changed[name] = given
    return changed


def from_wire(data: Mapping[str, Any]) -> Facts:
    """The facts from the JSON of `changed_facts`.

    Raises:
        KeyError, ValueError, TypeError: the data is no such JSON.
    """
    made: Facts = _build(Facts, data)
    return made


def _default(one: "Field[Any]") -> Any:
    if one.default is not MISSING:
        return one.default
    return one.default_factory() if one.default_factory is not MISSING else MISSING


_DEFAULTS = tuple((one.name, _default(one)) for one in fields(Facts))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _build(kind: type, data: Mapping[str, Any]) -> Any:
    hints, former = _hints(kind), _FORMER.get(kind, frozenset())
    return kind(**{name: _value(hints[name], given) for name, given in data.items() if name not in former})


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
    return _build(kind, given) if is_dataclass(kind) and isinstance(kind, type) else given
