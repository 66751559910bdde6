"""The glossary names code, API fields and page words that exist."""

import importlib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fastapi import FastAPI

from classifiers.model import constants
from service.web.api.schemas import schema
from service.web.app import API
from service.web.request_gate import API_PREFIX
from tests.architecture.documents import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERM = re.compile(r"^### (?P<term>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(?P<name>[\w.]+)` in `(?P<file>[\w/]+\.toml)`|`(?P<alone>[\w./]+)`")
API_NAME = re.compile(
    r"`(?P<field>[\w.]+)` in `(?P<schema>[\w-]+/\d+)`"
    r"|(?:`(?P<part>\w+)` of )?`(?P<method>GET|POST|PUT|DELETE) (?P<path>/api/v1/[^`]+)`"
)
TERMS = {match["term"]: match["body"] for match in TERM.finditer(GLOSSARY)}
KINDS = ("Code", "API", "Pages")


def lines(kind: str) -> list[tuple[str, str]]:
    """The terms that have a line of this kind, with the line's text."""
    pattern = re.compile(rf"^- {kind}: (.+)$", re.MULTILINE)
    return [(term, found) for term, body in TERMS.items() for found in pattern.findall(body)]


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, an attribute of one, or a field of a class there."""
    parts = name.split(".")
    found: Any = None
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        rest = parts[end:]
        break
    else:
        return False
    for part in rest:
        fields = {**getattr(found, "__annotations__", {}), **getattr(found, "model_fields", {})}
        if hasattr(found, part):
            found = getattr(found, part)
        elif part in fields and not isinstance(found, ModuleType):
            found = fields[part]
        else:
            return False
    return True


def toml_has(file: str, name: str) -> bool:
    found: Any = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return False
        found = found[part]
    return True


@cache
def described() -> dict[str, Any]:
    """The OpenAPI description of the API."""
    app = FastAPI()
    for module in API:
        app.include_router(module.router, prefix=API_PREFIX)
    return app.openapi()


def properties(node: Any, seen: frozenset[str] = frozenset(), *, root: Mapping[str, Any]) -> set[str]:
    """The names of all properties that a JSON Schema reaches."""
    found: set[str] = set()
    if isinstance(node, list):
        return found.union(*(properties(one, seen, root=root) for one in node))
    if not isinstance(node, Mapping):
        return found
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        found |= properties(target, seen | {reference}, root=root)
    if isinstance(node.get("properties"), Mapping):
        found |= set(node["properties"])
    return found.union(*(properties(one, seen, root=root) for one in node.values()))


def field_exists(name: str, of: str) -> bool:
    """Whether a published schema has a field; `evidence.role` is a field below `evidence`."""
    shape = schema(of)
    first, *rest = name.split(".")
    if first not in shape["properties"]:
        return False
    return set(rest) <= properties(shape["properties"][first], root=shape)


def operation(method: str, path: str) -> Mapping[str, Any] | None:
    """One operation of the API; placeholders may have any name."""
    plain = re.sub(r"\{[^}]*\}", "{}", path)
    for known, methods in described()["paths"].items():
        if re.sub(r"\{[^}]*\}", "{}", known) == plain and method.lower() in methods:
            found: Mapping[str, Any] = methods[method.lower()]
            return found
    return None


@cache
def page_text() -> str:
    """Every text of the pages, in lower case."""
    web = ROOT / "service" / "web"
    files = [
        *(web / "templates").glob("**/*.html"),
        *(web / "pages").glob("**/*.toml"),
        *(web / "pages").glob("**/*.py"),
    ]
    return "\n".join(Path(file).read_text(encoding="utf-8") for file in files).lower()


def test_the_glossary_has_terms_and_each_a_definition_and_a_place_in_the_code() -> None:
    assert len(TERMS) >= 30
    assert len(TERMS) == len(re.findall(r"^### ", GLOSSARY, re.MULTILINE))
    for term, body in TERMS.items():
        assert len(body.split("\n- ")[0].strip()) > 30, term
        assert "\n- Code: " in body, term
        kinds = re.findall(r"^- (\w+): ", body, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], term


def test_the_code_has_the_name() -> None:
    for term, text in lines("Code"):
        names = list(CODE.finditer(text))
        assert names, term
        for name in names:
            if name["file"]:
                assert toml_has(name["file"], name["name"]), f"{term}: {name[0]}"
            elif "/" in name["alone"]:
                assert (ROOT / name["alone"]).exists(), f"{term}: {name[0]}"
            else:
                assert resolves(name["alone"]), f"{term}: {name[0]}"


def test_the_api_has_the_name() -> None:
    for term, text in lines("API"):
        names = list(API_NAME.finditer(text))
        assert names, term
        assert API_NAME.sub("", text).strip(", ") == "", term
        for name in names:
            if name["schema"]:
                assert field_exists(name["field"], name["schema"]), f"{term}: {name[0]}"
            else:
                found = operation(name["method"], name["path"])
                assert found is not None, f"{term}: {name[0]}"
                if name["part"]:
                    assert name["part"] in properties(found, root=described()), f"{term}: {name[0]}"


def test_the_pages_have_the_word() -> None:
    for term, text in lines("Pages"):
        words = re.findall(r'"([^"]+)"', text)
        assert words, term
        assert [word for word in words if word.lower() not in page_text()] == [], term


def test_the_glossary_has_the_threshold_of_failures_with_node_events() -> None:
    below = f"below {constants.EVENTS_ANSWERED_FROM:.2f} if the failure has node events"
    assert below in " ".join(TERMS["Abstained"].split())
