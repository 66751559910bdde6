"""The names that clients of the API rely on: routes, parameters, and the fields of requests and answers.

`python -m tests.service.web.api.wire_names` renews the list. Each line is an operation, `?` for its parameters, `<` for
the fields of its request or `>` for those of its answers, and the names, without the objects that they are in. A name
after `=` is a value of a field that has a few fixed ones.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import MagicMock

from service.web.app import create_app

LIST = Path(__file__).with_name("wire_names.txt")
Json = Mapping[str, "Json"] | list["Json"] | str | int | float | bool | None


def names() -> set[tuple[str, str]]:
    """The pairs of an operation with `?`, `<` or `>`, and a name."""
    document = create_app(MagicMock()).openapi()
    found = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            parts = {
                "?": [{"properties": {one["name"]: {} for one in operation.get("parameters", ())}}],
                "<": [operation.get("requestBody", {})],
                ">": [answer for status, answer in operation["responses"].items() if status.startswith("2")],
            }
            for sign, described in parts.items():
                found.add((f"{where} {sign}", ""))
                found |= {(f"{where} {sign}", name) for one in described for name in _fields(one, document, ())}
    return found


def recorded() -> set[tuple[str, str]]:
    """The pairs of the list."""
    lines = (line.split(" ") for line in LIST.read_text(encoding="utf-8").splitlines())
    return {(" ".join(line[:3]), name) for line in lines for name in ("", *line[3:])}


def _fields(described: Json, document: Mapping[str, Json], within: tuple[str, ...]) -> Iterator[str]:
    if isinstance(described, list):
        for one in described:
            yield from _fields(one, document, within)
    if not isinstance(described, Mapping):
        return
    for key, value in described.items():
        if key == "properties" and isinstance(value, Mapping):
            yield from value
            yield from _fields(list(value.values()), document, within)
        elif key == "enum" and isinstance(value, list):
            yield from (f"={one}" for one in value)
        elif key == "$ref" and isinstance(value, str) and value not in within:
            target: Json = document
            for part in value.removeprefix("#/").split("/"):
                assert isinstance(target, Mapping)
                target = target[part]
            yield from _fields(target, document, (*within, value))
        else:
            yield from _fields(value, document, within)


if __name__ == "__main__":
    by_operation: dict[str, list[str]] = {}
    for operation, name in sorted(names()):
        by_operation.setdefault(operation, []).extend([name] if name else [])
    lines = (" ".join((operation, *listed)) for operation, listed in sorted(by_operation.items()))
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
