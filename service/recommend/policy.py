"""The policy: read from TOML, merged with the built-in policy, validated with line numbers, specialized for a job."""

import copy
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError

from service import toml_positions
from service.contracts.event import as_unreadable
from service.errors import ConfigurationError, FieldError
from service.recommend.policy_settings import OVERRIDDEN, Retrier, Rule, Sections, Span, Where
from service.setting_texts import toml_text

BUILT_IN = "built in"
_LISTS = ("rule", "retrier")
_OF_WHERE = tuple(Where.model_fields)
# Of each list of a file: each override is checked with all rules. Far more than anybody writes (judgement).
MOST_ROWS = 500
_PathOf = Callable[[tuple[str | int, ...]], tuple[str | int, ...]]  # in the file, of one in the merged policy
MOST_ERRORS = 20  # that a message names: a file of a megabyte may have a hundred thousand


class Policy(Sections):
    """A validated policy. `prior_weight` is the weight of the published figures, in local outcomes.

    `version` names the file's version and the built-in version below it, such as `night-1/builtin-2`.
    """

    version: str = Field(min_length=1)
    prior_weight: Span
    rule: tuple[Rule, ...] = Field(min_length=1)
    retrier: tuple[Retrier, ...] = ()
    _overrides: tuple[tuple[Where, dict[str, Any], str], ...] = PrivateAttr(default=())
    _raw: dict[str, Any] = PrivateAttr(default_factory=dict)
    _origins: dict[tuple[str, ...], str] = PrivateAttr(default_factory=dict)
    _effective: dict[tuple[int, ...], "Policy"] = PrivateAttr(default_factory=dict)

    def effective(self, *, cluster: str | None = None, queue: str | None = None, team: str | None = None) -> "Policy":
        """The policy for a job of this cluster, queue and team: all matching overrides applied, the most specific last.

        Among equally specific overrides a team's outweighs a queue's, a queue's a cluster's, and a later one an earlier
        one.
        """
        if not self._overrides:
            return self
        meant = sorted(
            (place for place, (where, _, _) in enumerate(self._overrides) if where.covers(cluster, queue, team)),
            key=lambda place: (self._overrides[place][0].rank, place),
        )
        key = tuple(meant)
        if key not in self._effective:
            raw, origins = copy.deepcopy(self._raw), dict(self._origins)
            for place in meant:
                where, changes, name = self._overrides[place]
                _merge(raw, changes, origins, lambda _, where=where, name=name: f"{name} ({where})")
            self._effective[key] = _built(raw, origins)
        return self._effective[key]

    def values(self) -> Iterator[tuple[str, Any, str]]:
        """Every setting as (name, value, origin), in the order of the sections."""
        yield "prior_weight", self.prior_weight, self._origins.get(("prior_weight",), BUILT_IN)
        for section in OVERRIDDEN:
            for name, value in getattr(self, section):
                yield f"{section}.{name}", value, self._origins.get((section, name), BUILT_IN)

    def origin(self, kind: str, name: str) -> str:
        """The origin of a rule or retrier: the file and line, or "built in"."""
        return self._origins.get((kind, name), BUILT_IN)

    @property
    def overrides(self) -> tuple[str, ...]:
        """The scopes of the overrides, as text."""
        return tuple(str(where) for where, _, _ in self._overrides)


def _built(raw: dict[str, Any], origins: dict[tuple[str, ...], str]) -> Policy:
    made = Policy.model_validate({name: value for name, value in raw.items() if name != "override"})
    made._raw, made._origins = raw, origins  # noqa: SLF001 - its own module; pydantic takes no private values
    return made


def _merge(raw: dict[str, Any], changes: Mapping[str, Any], origins: dict[tuple[str, ...], str], origin: Any) -> None:
    """Merge settings into others, in place. Rules and retriers of the same name are replaced, new ones come first."""
    for name, value in changes.items():
        if name in _LISTS and isinstance(value, list):
            _merge_list(raw, name, value, origins, origin)
        elif isinstance(value, dict) and isinstance(raw.get(name), dict):
            for key, given in value.items():
                raw[name][key] = given
                origins[name, key] = origin((name, key))
        elif name not in {"version", "override"}:
            raw[name] = value
            origins[(name,)] = origin((name,))


def _identity(kind: str, entry: Any) -> str | None:
    named = entry.get("name" if kind == "rule" else "label") if isinstance(entry, dict) else None
    return named if isinstance(named, str) else None


def _merge_list(
    raw: dict[str, Any], kind: str, rows: list[Any], origins: dict[tuple[str, ...], str], origin: Any
) -> None:
    before = raw.get(kind, [])
    known = {_identity(kind, row): place for place, row in enumerate(before)}
    added = []
    for place, row in enumerate(rows):
        identity = _identity(kind, row)
        if identity is not None and identity in known:
            before[known[identity]] = row
        else:
            added.append(row)
        if identity is not None:
            origins[kind, identity] = origin((kind, place))
    raw[kind] = [*added, *before]


class _Errors:
    """The validation errors of a policy file, with line numbers."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self.found: list[FieldError] = []

    def add(self, path: tuple[str | int, ...], expected: str, got: str | None = None) -> None:
        line = toml_positions.line_of(self._text, path)
        field = ".".join(str(part) for part in path)
        self.found.append(FieldError(field if line is None else f"{field} (line {line})", expected, got))

    def add_pydantic(self, error: ValidationError, path_of: _PathOf) -> None:
        for problem, translated in zip(error.errors(include_url=False), as_unreadable(error).errors, strict=False):
            known = problem["type"] != "extra_forbidden"
            path = path_of(tuple(problem["loc"]))
            if known:
                self.add(path, translated.expected, translated.got)
            else:
                self.add(path, "unknown setting")

    def raise_if_any(self) -> None:
        """Raise the collected errors, if any.

        Raises:
            ConfigurationError: names each invalid setting with its line.
        """
        if self.found:
            named = self.found[:MOST_ERRORS]
            message = "; ".join(
                f"{one.field}: {one.expected}" + (f", not {one.got}" if one.got else "") for one in named
            )
            if len(self.found) > len(named):
                message += f"; and {len(self.found) - len(named):,} more"
            raise ConfigurationError(f"{self._name}: {message}", tuple(named))


def _in_file(given: Mapping[str, Any], merged: Mapping[str, Any], prefix: tuple[str | int, ...] = ()) -> _PathOf:
    """A function from a path in the merged policy to the path in the file that set it."""

    def path(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
        if len(loc) > 1 and loc[0] in _LISTS and isinstance(loc[1], int):
            row = merged[str(loc[0])][loc[1]]
            own = next((place for place, one in enumerate(given.get(str(loc[0]), [])) if one is row), loc[1])
            return (*prefix, loc[0], own, *loc[2:])
        return (*prefix, *loc)

    return path


def _check_overrides(rows: Any, raw: dict[str, Any], errors: _Errors, name: str, text: str) -> list[Any]:
    out: list[tuple[Where, dict[str, Any], str]] = []
    if not isinstance(rows, list):
        errors.add(("override",), "tables written [[override]]")
        return out
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            errors.add(("override", place), "a table")
            continue
        changes = {key: value for key, value in row.items() if key not in _OF_WHERE}
        try:
            where = Where.model_validate({key: row[key] for key in _OF_WHERE if key in row})
        except ValidationError as error:
            errors.add_pydantic(error, _in_file({}, {}, ("override", place)))
            continue
        if not str(where):
            errors.add(("override", place), "a cluster, a queue or a team that it is for")
        for key in changes:
            if key not in OVERRIDDEN:
                errors.add(("override", place, key), f"one of {', '.join((*_OF_WHERE, *OVERRIDDEN))}")
        merged = copy.deepcopy(raw)
        changes = {key: value for key, value in changes.items() if key in OVERRIDDEN}
        _merge(merged, changes, {}, str)
        try:
            Policy.model_validate(merged)
        except ValidationError as error:
            errors.add_pydantic(error, _in_file(changes, merged, ("override", place)))
        out.append((where, changes, f"{name}:{toml_positions.line_of(text, ('override', place))}"))
    return out


def _read(text: str, name: str) -> dict[str, Any]:
    try:
        return toml_positions.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: not TOML: {error}") from None


def parse(text: str, name: str = "policy.toml") -> Policy:
    """Parse a policy from TOML text and merge it with the built-in one.

    Raises:
        ConfigurationError: names each invalid setting with its line and the expected value.
    """
    given = _read(text, name)
    for kind in (*_LISTS, "override"):
        rows = given.get(kind)
        if isinstance(rows, list) and len(rows) > MOST_ROWS:
            expected = f"at most {MOST_ROWS} of them"
            raise ConfigurationError(f"{name}: {kind}: {expected}", (FieldError(kind, expected, str(len(rows))),))
    base = built_in()
    raw, origins = copy.deepcopy(base._raw), dict(base._origins)  # noqa: SLF001 - its own module
    errors = _Errors(text, name)
    if not isinstance(given.get("version"), str) or not given["version"]:
        errors.add(("version",), "a name for this version of the policy, as text")
    _merge(raw, given, origins, lambda path: f"{name}:{toml_positions.line_of(text, path)}")
    raw["version"] = f"{given.get('version')}/{base.version}"
    try:
        Policy.model_validate(raw)
    except ValidationError as error:
        errors.add_pydantic(error, _in_file(given, raw))
    if errors.found:  # overrides can only be validated against a valid base
        errors.raise_if_any()
    overrides = _check_overrides(given.get("override", []), raw, errors, name, text)
    errors.raise_if_any()
    policy = _built(raw, origins)
    policy._overrides = tuple(overrides)  # noqa: SLF001 - its own module
    return policy


@cache
def built_in() -> Policy:
    """The built-in policy."""
    text = files("service.recommend").joinpath("policy.toml").read_text(encoding="utf-8")
    return _built(tomllib.loads(text), {})


def load(path: Path | None, *, setting: str | None = None) -> Policy:
    """The policy of a file merged with the built-in one, or the built-in one if `path` is None.

    Args:
        path: the file.
        setting: the setting that names the file, for messages.

    Raises:
        ConfigurationError: the file cannot be read, or a setting is invalid.
    """
    if path is None:
        return built_in()
    place = str(path) if setting is None else f"{setting}: {path}"
    return parse(toml_text(path, place), place)
