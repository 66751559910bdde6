"""Catalogue of the texts that pages, reports, messages and `explain` show, from templates, data files and code.

`python -m tests.architecture.visible_texts` renews the catalogue. Each of its lines is a file and a text, separated by
a tab. An expression in a text is a named placeholder such as `{total}`; `¦` marks where a condition or a loop starts or
ends inside a text. Single words that code passes to a page are not collected: most of them are keys.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from jinja2 import Environment

from tests.architecture.documents import ROOT

CATALOGUE = Path(__file__).with_name("visible_texts.txt")
VISIBLE_ATTRIBUTES = frozenset({"title", "placeholder", "aria-label", "alt", "data-label"})
INLINE = frozenset({"a", "abbr", "b", "bdi", "code", "em", "i", "kbd", "small", "span", "strong", "time"})
HIDDEN = frozenset({"script", "style"})
CODE_FOLDERS = ("service/web", "service/reports", "service/deliveries/channels", "service/explain", "service/headlines")
# Data whose texts pages, reports, messages and commands show, outside these folders.
DATA_FILES = (
    "classifiers/owner_summary.toml",
    "classifiers/taxonomy.toml",
    "service/goodput/definitions.toml",
    "service/recommend/mitigations.toml",
    "service/recommend/policy.toml",
    "service/recommend/reasons.toml",
)
# Of these, pages show the titles.
SIGNATURES = ROOT / "classifiers" / "data" / "signatures"
NOT_SHOWN = frozenset({"source", "name", "label", "labels", "paper", "note"})  # keys of these files
MARKER = re.compile("\ue000(\\d+)\ue001")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'')
PATH = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")
WORDS = re.compile(r"[A-Za-z]{2,},? [A-Za-z{]|^[A-Z][a-z]{2,}")
NOT_PROSE = re.compile(r"^[a-z/.:*]*[;=]|://|^[.#\[]|^(?:SELECT|WITH|INSERT|UPDATE|DELETE) |-src |max-age")


def is_prose(text: str) -> bool:
    """Whether a string literal of code is likely a text for people: two words, or one with a capital letter."""
    return bool(WORDS.search(text)) and not NOT_PROSE.search(text)


def is_sentence(text: str) -> bool:
    """Whether a literal has at least two words; single words in code are mostly keys."""
    return " " in text.strip() and is_prose(text)


def placeholder(expression: str) -> str:
    """The name that stands for an expression: its first variable, such as `{total}` for `page.total | number`."""
    names = [name for name in PATH.findall(LITERAL.sub("", expression)) if name not in {"if", "else", "not", "or"}]
    return "{" + (names[0].rsplit(".", 1)[-1] if names else "text") + "}"


class TemplateTexts(HTMLParser):
    """Collects text nodes and visible attributes of a template whose Jinja parts are replaced by markers."""

    def __init__(self, parts: list[tuple[str, str]]) -> None:
        super().__init__()
        self.parts = parts
        self.found: set[str] = set()
        self._text: list[str] = []
        self._hidden = 0

    def _shown(self, text: str) -> str:
        def replacement(match: re.Match[str]) -> str:
            kind, source = self.parts[int(match[1])]
            literals = (one or other for one, other in LITERAL.findall(source))
            self.found.update(literal.strip() for literal in literals if is_prose(literal))
            return placeholder(source) if kind == "variable" else "¦"

        return re.sub(r"\s+", " ", MARKER.sub(replacement, text))

    def _end_text(self) -> None:
        text = self._shown("".join(self._text)).strip(" ¦")
        self._text.clear()
        if re.search(r"[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)):
            self.found.add(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            self._hidden += 1
        if tag not in INLINE:
            self._end_text()
        values = dict(attrs)
        names = VISIBLE_ATTRIBUTES | ({"value"} if values.get("type") in {"submit", "button"} else set())
        for name in names & set(values):
            text = self._shown(values[name] or "").strip(" ¦")
            if re.search(r"[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)):
                self.found.add(text)

    def handle_endtag(self, tag: str) -> None:
        if tag in HIDDEN:
            self._hidden -= 1
        if tag not in INLINE:
            self._end_text()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data)


def template_texts(source: str) -> set[str]:
    """The visible texts of a Jinja template in HTML."""
    parts: list[tuple[str, str]] = []
    html: list[str] = []
    kind = ""
    inside: list[str] = []
    for _, token, value in Environment(autoescape=True).lex(source):
        if token == "data":
            html.append(value)
        elif token in {"variable_begin", "block_begin"}:
            kind, inside = token.removesuffix("_begin"), []
        elif token in {"variable_end", "block_end"}:
            html.append(f"\ue000{len(parts)}\ue001")
            parts.append((kind, "".join(inside)))
            kind = ""
        elif kind:
            inside.append(value)
    reader = TemplateTexts(parts)
    reader.feed("".join(html))
    reader.close()
    reader._end_text()
    return reader.found


def python_texts(source: str) -> set[str]:
    """The sentences among the string literals of a module, without docstrings and the arguments of log calls."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger" | "re"))):
                skipped.update(id(inner) for inner in ast.walk(node))
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            text = "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else placeholder(ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part))
                for part in node.values
            )
            skipped.update(id(part) for part in node.values)
            found.update({text} if is_sentence(text) else set())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            found.update({node.value} if is_sentence(node.value) else set())
    return {re.sub(r"\s*\n\s*", " ", text).strip() for text in found}


def data_texts(value: Any, skipped: frozenset[str] = frozenset()) -> Iterator[str]:
    """The texts among the values of a TOML file, without those of the `skipped` keys."""
    if isinstance(value, str) and is_prose(value):
        yield re.sub(r"\s+", " ", value).strip()
    elif isinstance(value, dict | list):
        shown = [value[key] for key in value if key not in skipped] if isinstance(value, dict) else value
        for inner in shown:
            yield from data_texts(inner, skipped)


def titles(value: Any) -> Iterator[str]:
    """The titles in a TOML file, also those of one word."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "title" and isinstance(text, str))
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from titles(inner)


def literal_texts(source: str) -> set[str]:
    """The sentences among the string literals of a JavaScript file."""
    code = re.sub(r"^\s*(?://|/?\*).*$", "", source, flags=re.MULTILINE)
    return {text.strip() for pair in LITERAL.findall(code) for text in pair if is_sentence(text)}


def typst_texts(source: str) -> set[str]:
    """Texts in brackets and the sentences among the string literals of a Typst template."""
    code = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
    found = re.findall(r"\[([^\[\]\n]+)\]", code)
    bracketed = (re.sub(r"#[\w.]+(?:\([^()]*\))?", "{value}", text) for text in found)
    return literal_texts(code) | {text.strip() for text in bracketed if is_prose(text)}


def texts_of(file: Path) -> set[str]:
    """The visible texts of one file."""
    source = file.read_text(encoding="utf-8")
    match file.suffix:
        case ".html":
            return template_texts(source)
        case ".py":
            return python_texts(source)
        case ".toml" if file.is_relative_to(SIGNATURES):
            return set(titles(tomllib.loads(source)))
        case ".toml":
            own = file.relative_to(ROOT).as_posix() in DATA_FILES or "headlines" in file.parts
            return set(data_texts(tomllib.loads(source), NOT_SHOWN if own else frozenset()))
        case ".typ":
            return typst_texts(source)
        case _:
            return literal_texts(source)


def visible_texts() -> list[str]:
    """The lines of the catalogue, sorted by file and text."""
    folders = [ROOT / folder for folder in CODE_FOLDERS]
    files = [file for folder in folders for kind in ("html", "py", "toml", "typ") for file in folder.rglob(f"*.{kind}")]
    files += [ROOT / "service" / "web" / "static" / name for name in ("faultline.js", "charts.js")]
    files += [ROOT / name for name in DATA_FILES]
    files += SIGNATURES.rglob("*.toml")
    return sorted(f"{file.relative_to(ROOT).as_posix()}\t{text}" for file in files for text in texts_of(file))


if __name__ == "__main__":
    CATALOGUE.write_text("\n".join(visible_texts()) + "\n", encoding="utf-8")
